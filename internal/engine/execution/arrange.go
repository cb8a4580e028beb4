package execution

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// needsAccount reports whether a string names what needs a ServiceAccount, in any case. A TokenRequest is one
// for a ServiceAccount by default.
func needsAccount(text []byte) bool {
	text = bytes.ToLower(text)
	return slices.ContainsFunc([]string{"pod", "serviceaccount", "tokenrequest"}, func(word string) bool { return bytes.Contains(text, []byte(word)) })
}

// accounts returns which namespaces need the ServiceAccount default: the namespaces of the scenario, if it names Pods or
// ServiceAccounts, and others that it names; but none that it creates itself. The namespaces of a PolicyTest
// always have one.
func (c *Case) accounts() func(namespace string) bool {
	text, err := json.Marshal([]any{c.Scenario.Spec, c.Given})
	needs := c.Scenario.IsPolicyTest() || err != nil || needsAccount(text)
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
