package cluster

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// featureGates reads the gates that the API server reports as metric
// kubernetes_feature_enabled, or returns nil where it may not.
// See https://kubernetes.io/docs/reference/instrumentation/metrics/
func (t *Target) featureGates(ctx context.Context) map[string]bool {
	answer, err := t.text(ctx, "/metrics")
	if err != nil {
		return nil
	}
	gates := map[string]bool{}
	lines := bufio.NewScanner(strings.NewReader(answer))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), `kubernetes_feature_enabled{name="`)
		if !ok {
			continue
		}
		name, rest, _ := strings.Cut(rest, `"`)
		gates[name] = strings.HasSuffix(rest, " 1")
	}
	if len(gates) == 0 {
		return nil
	}
	return gates
}

// NewRunID makes an ID for a run: five random lower-case letters and digits.
func NewRunID() string { return strings.ToLower(rand.Text()[:5]) }

// text reads a document that is no API object.
func (t *Target) text(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.base.JoinPath(path).String(), http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := t.client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("read %s: %s", path, response.Status)
	}
	return string(body), nil
}
