package install

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// dropped returns a framework.ManifestError if the API server closes the connection because of a policy with an optional element of a list:
// kube-apiserver 1.37.2 does, and a request that is repeated only takes longer.
func (i *Installer) dropped(ctx context.Context, res client.Resource, manifest map[string]any) error {
	field := optionalElement(manifest)
	if field == "" {
		return nil
	}
	if _, err := i.Client.Send(ctx, client.DryRun(res.GroupVersionResource, "", manifest)); !errors.Is(err, framework.ErrNoResponse) {
		return nil
	}
	return &framework.ManifestError{Field: field, Err: fmt.Errorf("%s: the API server closes the connection for an optional element of a list, such as [?a]: this is a fault of Kubernetes, not of the policy: write a.hasValue() ? [a.value()] : []", field)}
}

// optionalElement returns the path of the first expression of a policy that has an optional element of a list, or "".
func optionalElement(manifest map[string]any) string {
	for _, path := range vary.Paths(manifest, nil) {
		value, _ := vary.At(manifest, path)
		if text, isText := value.(string); isText && strings.HasSuffix(path.String(), "xpression") && cel.HasOptionalElement(text) {
			return path.String()
		}
	}
	return ""
}
