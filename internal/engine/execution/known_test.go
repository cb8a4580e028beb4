package execution

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// described is a Target with OpenAPI documents, by group and version, or with what read returns. Without one, it answers with err.
type described struct {
	targettest.Target
	documents map[string]map[string]any
	read      func() (map[string]any, error)
	err       error
}

func (d described) Info() framework.TargetInfo { return framework.TargetInfo{Plugins: []string{"Own"}} }

func (d described) Optional() target.Optional {
	return target.Optional{
		OpenAPI: func(_ context.Context, of schema.GroupVersion) (map[string]any, error) {
			if document, ok := d.documents[of.String()]; ok {
				return document, nil
			} else if d.read != nil {
				return d.read()
			}
			return nil, d.err
		},
		Plugins: func(context.Context) ([]string, error) { return []string{"Foreign"}, errors.New("incomplete") },
	}
}

// documentOf returns an OpenAPI document with kinds that have a spec with one field.
func documentOf(field string, kinds ...schema.GroupVersionKind) map[string]any {
	schemas := map[string]any{}
	for _, kind := range kinds {
		schemas[kind.Kind] = map[string]any{
			"x-kubernetes-group-version-kind": []any{map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind}},
			"properties":                      map[string]any{"spec": map[string]any{"type": "object", "properties": map[string]any{field: map[string]any{"type": "string"}}}},
		}
	}
	return map[string]any{"components": map[string]any{"schemas": schemas}}
}

func TestMissingFields(t *testing.T) {
	t.Parallel()
	notFound := apierrors.NewNotFound(schema.GroupResource{}, "openapi")
	refused := apierrors.NewForbidden(schema.GroupResource{}, "openapi", nil)
	service := schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	flunder := schema.GroupVersionKind{Group: "flunders.example.com", Version: "v1", Kind: "Flunder"}
	scale := schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	options := schema.GroupVersionKind{Group: "meta.k8s.io", Version: "v1", Kind: "CreateOptions"}
	documents := map[string]map[string]any{
		"v1": documentOf("newer", service), "example.com/v1": documentOf("size", widget), "apps/v1": documentOf("replicas", scale),
	}
	type path = []any
	for name, one := range map[string]struct {
		kind    schema.GroupVersionKind
		path    path
		err     error
		missing bool
	}{
		"of this build":                {service, path{"spec", "type"}, notFound, false},
		"of the server only":           {service, path{"spec", "newer"}, notFound, false},
		"of neither":                   {service, path{"spec", "tpe"}, notFound, true},
		"of a custom resource":         {widget, path{"spec", "size"}, notFound, false},
		"not of a custom resource":     {widget, path{"spec", "sze"}, notFound, true},
		"written":                      {widget, path{"spec", "pruned"}, notFound, false},
		"written by a webhook":         {widget, path{"spec", "parts", 0, "name"}, notFound, false},
		"written elsewhere":            {widget, path{"spec", "label"}, notFound, false},
		"named elsewhere":              {widget, path{"spec", "elsewhere"}, notFound, true},
		"only expected":                {widget, path{"spec", "expected"}, notFound, true},
		"of a subresource":             {scale, path{"spec", "replicas"}, notFound, false},
		"not of a subresource":         {scale, path{"spec", "replcas"}, notFound, true},
		"of an aggregated server":      {flunder, path{"spec", "any"}, notFound, false},
		"without rights":               {flunder, path{"spec", "any"}, refused, false},
		"built in, without rights":     {schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, path{"spec", "prallelism"}, refused, false},
		"of options":                   {options, path{"dryRun"}, notFound, false},
		"not of options":               {options, path{"dryRunn"}, notFound, true},
		"of what is not an object":     {schema.GroupVersionKind{}, path{"any"}, notFound, false},
		"of an object that is no kind": {schema.GroupVersionKind{Version: "v1", Kind: "Nothing"}, path{"any"}, notFound, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Case{target: described{documents: documents, err: one.err}, shared: newShared(), patience: time.Second}
			c.Scenario.Spec.When = []scenario.Step{{
				Create: map[string]any{"spec": map[string]any{"pruned": true}, "metadata": map[string]any{"spec": map[string]any{"label": "x"}}, "data": map[string]any{"elsewhere": "x"}},
				Then:   &scenario.Expectation{Object: map[string]any{"spec": map[string]any{"expected": nil}}},
			}}
			c.Scenario.Spec.Hooks = map[string]scenario.Hook{"a": {Reply: scenario.Reply{Reply: hook.Reply{Patch: []hook.PatchOperation{{Op: "add", Path: "/spec/parts/-", Value: map[string]any{"name": "x"}}}}}}}
			got, err := c.missingField(t.Context(), schema.GroupVersion{Group: "apps", Version: "v1"}, one.kind, one.path)
			if (got != nil) != one.missing || err != nil {
				t.Errorf("%v is missing: got %v, %v; want %t", one.path, got, err, one.missing)
			}
		})
	}
}

// The schema of a custom resource follows its definition after some time, and a response can be lost. Without any, nothing is
// known: the field is not there, and not missing.
func TestSchemaOfANewDefinition(t *testing.T) {
	t.Parallel()
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	calls, lost := 0, 2
	late := described{read: func() (map[string]any, error) {
		if calls++; calls < lost {
			return nil, errors.New("the server does not respond")
		} else if calls < 4 {
			return nil, apierrors.NewNotFound(schema.GroupResource{}, "openapi")
		}
		return documentOf("size", widget), nil
	}}
	c := &Case{target: late, shared: newShared(), patience: time.Second}
	c.Given = []map[string]any{{"kind": "CustomResourceDefinition", "spec": map[string]any{"group": widget.Group}}}
	if got, err := c.missingField(t.Context(), schema.GroupVersion{}, widget, []any{"spec", "sze"}); got == nil || err != nil {
		t.Errorf("the field is not missing after %d reads: %v; want the schema to be waited for", calls, err)
	}
	c.patience, lost = 30*time.Millisecond, 1<<30
	result := framework.Result{Object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}}}
	if err := c.vacuous(t.Context(), &scenario.Expectation{Object: map[string]any{"sze": nil}}, widget.GroupVersion(), result); !errors.Is(err, framework.ErrTimeout) {
		t.Errorf("without a response: got %v; want a timeout", err)
	}
}

// What an expectation assumes to exist is looked for where it was compared, and plugins are names.
func TestVacuous(t *testing.T) {
	t.Parallel()
	c := &Case{target: described{err: apierrors.NewNotFound(schema.GroupResource{}, "openapi")}, shared: newShared(), path: "when[0]"}
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	result := framework.Result{Object: &unstructured.Unstructured{Object: object}, Audit: &framework.Audit{RequestObject: object}}
	absent := map[string]any{"dta": nil}
	for name, one := range map[string]struct {
		then scenario.Expectation
		says string
	}{
		"no such field":           {scenario.Expectation{Object: absent}, `unknown field "dta" in then.object; expected a field of the API server's v1 ConfigMap, because the expectation holds without such a field; did you mean "data"?`},
		"another place":           {scenario.Expectation{Object: map[string]any{"labels": nil}}, "check its name and indentation"},
		"of the audit event":      {scenario.Expectation{Audit: map[string]any{"requestObject": absent}}, "in then.audit"},
		"without an object":       {scenario.Expectation{Audit: map[string]any{"responseObject": absent}}, ""},
		"a field":                 {scenario.Expectation{Object: map[string]any{"data": nil}}, ""},
		"a key":                   {scenario.Expectation{Object: map[string]any{"data": map[string]any{"any": nil}}}, ""},
		"plugins of Kubernetes":   {scenario.Expectation{Plugins: &scenario.Plugins{Exclude: []string{"AlwaysDeny"}}}, ""},
		"plugins of the server":   {scenario.Expectation{Plugins: &scenario.Plugins{Exclude: []string{"Own", "Foreign"}}}, ""},
		"plugins that no one has": {scenario.Expectation{Plugins: &scenario.Plugins{Exclude: []string{"Own", "PodSecurty"}}}, `there is no admission plugin "PodSecurty"; expected one of Kubernetes or of the API server; did you mean "PodSecurity"?`},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.vacuous(t.Context(), &one.then, schema.GroupVersion{Version: "v1"}, result)
			switch {
			case err == nil && one.says != "":
				t.Errorf("got no error; want %q", one.says)
			case err != nil && (one.says == "" || !expect.IsMistake(err) || !strings.Contains(err.Error(), one.says)):
				t.Errorf("got %v; want %q", err, one.says)
			}
		})
	}
	if err := c.vacuous(t.Context(), nil, schema.GroupVersion{}, result); err != nil {
		t.Errorf("without an expectation: %v", err)
	}
}

// unknownKind is a Target without kinds. Err is why.
type unknownKind struct {
	targettest.Target
	err error
}

func (u unknownKind) Namespaced(schema.GroupVersionKind) (bool, error) { return false, u.err }

// A kind that does not exist is a mistake in the scenario, and one that only this API server lacks is not.
func TestUnknownKind(t *testing.T) {
	t.Parallel()
	step := scenario.Step{Get: &scenario.ObjectReference{APIVersion: "v1", Kind: "ConfigMapp", Name: "a"}}
	for _, one := range []struct {
		err     error
		mistake bool
	}{{errors.New("there is no kind ConfigMapp"), true}, {&framework.NotServedError{Name: "v1 ConfigMapp"}, false}} {
		t.Run(fmt.Sprint(one.err), func(t *testing.T) {
			c := &Case{target: unknownKind{err: one.err}, shared: newShared(), path: "when[0]"}
			failure := c.request(t.Context(), step)
			waited := c.wait(t.Context(), scenario.Wait{ObjectReference: *step.Get})
			if failure == nil || !errors.Is(failure.Err, one.err) || !errors.Is(waited, one.err) || expect.IsMistake(failure.Err) != one.mistake || expect.IsMistake(waited) != one.mistake {
				t.Errorf("%v: got %v, and %v for a wait; want a mistake: %t", one.err, failure, waited, one.mistake)
			}
		})
	}
}
