package execution

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/runid"
	"github.com/admissiontest/admissiontest/internal/target"
)

// Arrange creates the sandbox and installs what is given: first what configurations can
// refer to, then the configurations, and then the bindings, because an effective policy
// can refuse the configurations that follow it. The users of a PolicyTest get the rights for its requests.
func (s *Setup) Arrange(ctx context.Context) error {
	err := s.foreign(ctx, s.arrange(ctx))
	for _, c := range s.Cases {
		c.sandbox, c.existing = s.sandbox, s.existing
	}
	return err
}

func (c *Case) arrange(ctx context.Context) error {
	given, steps := c.Requests()
	options := target.SandboxOptions{
		ID: c.ID, Users: c.ownUser, Open: c.Open(), Accounts: c.accounts(), DryRuns: c.stores(),
		Requests: append(append([]framework.Request{}, given...), steps...),
	}
	if conversion := c.Scenario.Spec.Conversion; conversion != nil {
		options.Conversion = *conversion
	}
	c.existing = map[int]error{}
	var err error
	if c.sandbox, err = c.target.NewSandbox(ctx, options); err != nil {
		return err
	}
	for i, namespace := range c.namespaces {
		if err := c.installGiven(ctx, fmt.Sprintf("namespaces[%d]", i), c.manifestOf(namespace)); err != nil {
			return err
		}
	}
	for stage := range stages {
		for i, manifest := range c.Given {
			if stageOf(manifest) != stage || c.isExisting(i) && c.oneAtATime(manifest) {
				continue
			}
			err := c.installGiven(ctx, fmt.Sprintf("given[%d]", i), manifest)
			switch {
			case err != nil && c.isExisting(i):
				c.existing[i] = err
			case err != nil:
				return err
			default:
				c.begun = true
			}
		}
		if requests := c.granted(); stage == 0 && len(requests) > 0 {
			if err := c.sandbox.Grant(ctx, requests); err != nil {
				return err
			}
		}
	}
	c.begun = true
	err = asError(c.deadRules("given", c.Installed()))
	if err != nil {
		if notServed := c.stepNotServed(); notServed != nil {
			return notServed // that is why the rules match nothing
		}
	}
	return err
}

// stepNotServed returns a framework.NotServedError if the API server does not serve the kind of a step, and the
// scenario does not define it either.
func (c *Case) stepNotServed() error {
	given, written := c.groups()
	_, steps := c.Requests()
	for _, request := range steps {
		defined := slices.Contains(given, request.Kind.Group) || slices.Contains(written, request.Kind.Group)
		if _, err := c.target.Namespaced(request.Kind); errors.Is(err, framework.ErrNotServed) && !defined {
			return err
		}
	}
	return nil
}

// granted returns the requests whose users get the rights for them: the requests of a PolicyTest. A Scenario says
// itself which rights its users have.
func (c *Case) granted() []framework.Request {
	var out []framework.Request
	for _, raw := range c.Scenario.Spec.When {
		step, err := scenario.Replace(raw, c.lookup)
		if err != nil || step.As == nil || !c.Scenario.IsPolicyTest() {
			continue
		}
		if request, _, err := c.composer().Compose(step); err == nil { // the step itself reports an error
			out = append(out, request)
		}
	}
	return out
}

// Uninstall removes the webhook configurations and policies that were installed. It does not wait
// until the API server no longer acts on them.
func (s *Setup) Uninstall(ctx context.Context) error { return s.sandbox.Uninstall(ctx) }

// Begun reports whether Arrange has installed something, or everything, also if it failed after that.
func (s *Setup) Begun() bool { return s.begun }

// RemoveStored removes, after Uninstall, what other scenarios can need the names of.
func (s *Setup) RemoveStored(ctx context.Context) error { return s.sandbox.RemoveStored(ctx) }

// needsAccount matches what names what needs a ServiceAccount. A TokenRequest is one for a ServiceAccount by default.
var needsAccount = regexp.MustCompile(`(?i)pod|serviceaccount|tokenrequest`)

// accounts returns which namespaces need the ServiceAccount default: the namespaces of the scenario, if it names Pods or
// ServiceAccounts, and others that it names; but none that it creates itself. The namespaces of a PolicyTest
// always have one.
func (c *Case) accounts() func(namespace string) bool {
	text, err := json.Marshal([]any{c.Scenario.Spec, c.Given})
	needs := c.Scenario.IsPolicyTest() || err != nil || needsAccount.Match(text)
	created := map[string]bool{}
	_, steps := c.Requests()
	for _, request := range steps {
		if request.Verb == framework.VerbCreate && request.Kind.Kind == "ServiceAccount" && request.Name == "default" && request.Subresource == "" {
			created[cmp.Or(request.Namespace, c.ID)] = true
		}
	}
	return func(namespace string) bool {
		own := runid.Has(namespace, c.ID) || strings.Contains(string(text), fmt.Sprintf(`"namespace":%q`, namespace))
		return needs && own && !created[namespace]
	}
}

// installGiven installs a manifest at a field path of the spec: "given[1]".
func (c *Case) installGiven(ctx context.Context, path string, manifest map[string]any) error {
	err := c.sandbox.Install(ctx, manifest, c.currentScripts())
	if err == nil {
		c.seeManifest(manifest)
	}
	return c.installed(c.asWritten(ctx, err, manifest), path, manifest)
}

// installed returns the error of installing a manifest at a field path of the spec, as an error of that path.
func (c *Case) installed(err error, path string, manifest map[string]any) error {
	err = c.asMistake(err, path, manifest)
	if err == nil || expect.IsMistake(err) {
		return err
	}
	return fmt.Errorf("install %s %s: %w", path, object.Describe(manifest), err)
}

// asWritten returns the error of installing a manifest: a ForeignError if the API server stores something else,
// and a webhook or policy of another client can be why.
func (c *Case) asWritten(ctx context.Context, err error, manifest map[string]any) error {
	if errors.As(err, new(*framework.ManifestError)) {
		if foreign := c.foreignChangeOf(ctx, manifest); foreign != nil {
			return foreign
		}
	}
	return err
}

// manifestOf returns the manifest of one of spec.namespaces.
func (c *Case) manifestOf(namespace scenario.Namespace) map[string]any {
	metadata := map[string]any{"name": c.namespaceName(namespace.Name)}
	for field, values := range map[string]map[string]string{"labels": namespace.Labels, "annotations": namespace.Annotations} {
		all := map[string]any{}
		for key, value := range values {
			all[key] = value
		}
		metadata[field] = all
	}
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
}

// stages is the number of stages of Arrange. stageOf returns the stage of a manifest.
const stages = 3

func stageOf(manifest map[string]any) int {
	switch {
	case !object.IsAdmission(manifest):
		return 0
	case !strings.HasSuffix(kindOf(manifest).Kind, "Binding"):
		return 1
	default:
		return 2
	}
}

// isExisting reports whether a manifest of Given only exists for the requests of the cases.
func (c *Case) isExisting(index int) bool { return index >= len(c.Given)-c.Scenario.Existing }

// oneAtATime reports whether an object only exists while the case of its request runs: a webhook configuration or policy
// is then the object of a request, and does not decide for the case.
func (c *Case) oneAtATime(manifest map[string]any) bool { return object.IsAdmission(manifest) }

// stores reports whether an object only exists while a case runs. Then the requests of all cases are dry runs.
func (c *Case) stores() bool { return len(c.Installed()) < len(c.Given) }

// Installed returns what Arrange installs: Given without what only exists while the case runs.
func (c *Case) Installed() []map[string]any {
	var out []map[string]any
	for i, manifest := range c.Given {
		if !c.isExisting(i) || !c.oneAtATime(manifest) {
			out = append(out, manifest)
		}
	}
	return out
}

// Requests returns the requests that create what the scenario is given, and the requests of its steps, as far as
// they are known before it runs.
func (c *Case) Requests() (given, steps []framework.Request) {
	s := c.Scenario
	spec, err := scenario.Replace(s.Spec, func(name string) (any, bool) {
		if value, ok := c.lookup(name); ok {
			return value, true
		}
		return "$(" + name + ")", true
	})
	if err != nil {
		return nil, nil
	}
	s.Spec = spec
	composer := c.composer()
	composer.Namespaced = func(kind schema.GroupVersionKind) (bool, error) {
		namespaced, err := c.namespaced(kind)
		return err == nil && namespaced, nil
	}
	return Given(s), composer.Steps(s)
}

// prepare makes the object exist that the request of a case of a PolicyTest is for, if it exists only for that. Uninstall
// removes it, after the policies of the case: they can refuse that.
func (c *Case) prepare(ctx context.Context) error {
	if !c.Scenario.IsPolicyTest() || len(c.Scenario.Spec.When) == 0 {
		return nil
	}
	step, err := scenario.Replace(c.Scenario.Spec.When[len(c.Scenario.Spec.When)-1], c.lookup)
	if err != nil {
		return nil //nolint:nilerr // carrying it out reports the error
	}
	request, _, err := c.composer().Compose(step)
	if err != nil {
		return nil //nolint:nilerr // carrying it out reports the error
	}
	index := slices.IndexFunc(c.Given, func(manifest map[string]any) bool {
		is := unstructured.Unstructured{Object: manifest}
		namespace := cmp.Or(is.GetNamespace(), request.Namespace)
		return is.GroupVersionKind().GroupKind() == request.Kind.GroupKind() && is.GetName() == request.Name && namespace == request.Namespace
	})
	switch {
	case index < 0 || c.existing[index] == nil && !c.oneAtATime(c.Given[index]):
		return nil
	case c.existing[index] != nil:
		return c.existing[index]
	}
	err = c.asWritten(ctx, c.sandbox.Store(ctx, c.Given[index]), c.Given[index])
	return c.installed(err, fmt.Sprintf("given[%d]", index), c.Given[index])
}
