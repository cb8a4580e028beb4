// Package suitetest has a small catalogue and an API server that is not one, for the
// tests of the conformance packages.
package suitetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// Scenarios returns one scenario for each way to end. The server does what the name of the
// created object says.
func Scenarios() fstest.MapFS {
	const form = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: %[1]s}
spec:
  level: %[2]s
  requirement: The requirement of %[1]s.
  source: ["https://example.com/source"]
  behaviours: [%[3]s]
  %[4]s
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: %[5]s}}
      then: {code: 201}
`
	out := fstest.MapFS{}
	for _, one := range []struct{ name, level, behaviour, more, object string }{
		{"one.pass", "MUST", "ORDER-001", "", "fine"},
		{"one.must-fails", "MUST", "ORDER-001", "", "refused"},
		{"one.should-fails", "SHOULD", "ORDER-014", "", "refused"},
		{"one.may-fails", "MAY", "ORDER-002", "", "refused"},
		{"two.pass", "SHOULD", "ORDER-003", "", "fine"},
		{"two.unsupported", "MUST", "ORDER-004", `since: "1.99"`, "refused"},
		{"two.skipped", "MUST", "ORDER-004", "", "refused"},
		{"two.error", "MUST", "ORDER-004", "", "broken"},
		{"two.inconclusive", "MUST", "ORDER-004", "", "open"},
		{"two.known", "MUST", "ORDER-004", "", "refused"},
	} {
		area, slug, _ := strings.Cut(one.name, ".")
		text := fmt.Sprintf(form, one.name, one.level, one.behaviour, one.more, one.object)
		out[path.Join(area, slug+".yaml")] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// Provider provides the server.
type Provider struct {
	// Broken makes Start fail, Dies makes the server stop responding.
	Broken, Dies bool
	// Server is the version of the server. Empty means v1.36.3.
	Server string
}

// VersionIn returns the version in a list of words, the one that begins with "v", or "".
func VersionIn(words string) string {
	for word := range strings.FieldsSeq(words) {
		if strings.HasPrefix(word, "v1.") {
			return word
		}
	}
	return ""
}

// Check returns nil.
func (*Provider) Check(context.Context, []scenario.Scenario) error { return nil }

// Version returns "".
func (*Provider) Version(context.Context) (string, error) { return "", nil }

// SelectIn returns the names in a list of words: the names of "only=NAME,…". Nil means all.
func SelectIn(words string) []string {
	for word := range strings.FieldsSeq(words) {
		if names, ok := strings.CutPrefix(word, "only="); ok {
			return strings.Split(names, ",")
		}
	}
	return nil
}

// Start returns the server.
func (p *Provider) Start(context.Context, target.StartOptions) (target.Target, error) {
	if p.Broken {
		return nil, errors.New("start fixture: it is broken")
	}
	hooks, err := hook.Start(context.Background(), hook.Options{})
	s := &server{hooks: hooks, dies: p.Dies, version: cmp.Or(p.Server, "v1.36.3")}
	return fakeTarget{targettest.Target{Sandbox: s}, s}, err
}

// server is a target and its Sandbox. It answers as the name of the object says.
type server struct {
	targettest.Sandbox

	hooks *hook.Server
	dies  bool
	// version is what the server reports.
	version string
}

func (s *server) Record() *hook.Recording { return s.hooks.Record("fixture") }

func (s *server) Do(_ context.Context, request framework.Request) (framework.Result, error) {
	if s.dies {
		return framework.Result{}, fmt.Errorf("fixture: %w", framework.ErrNoResponse)
	}
	status := func(code int32) framework.Result {
		return framework.Result{Status: metav1.Status{Code: code, Message: "by the fixture"}}
	}
	switch request.Name {
	case "refused":
		return status(http.StatusForbidden), nil
	case "broken":
		return framework.Result{}, errors.New("fixture: unknown problem")
	case "open":
		return framework.Result{}, fmt.Errorf("fixture: %w", framework.ErrTimeout)
	default:
		return status(http.StatusCreated), nil
	}
}

// fakeTarget is the target of a server.
type fakeTarget struct {
	targettest.Target

	server *server
}

func (t fakeTarget) Info() framework.TargetInfo {
	return framework.TargetInfo{Kind: framework.TargetKubeconfig, ServerVersion: t.server.version}
}

func (t fakeTarget) Alive(context.Context) error {
	if t.server.dies {
		return fmt.Errorf("fixture: %w", framework.ErrNoResponse)
	}
	return nil
}

func (t fakeTarget) Close(context.Context) error { return t.server.hooks.Close() }
