package execution

import (
	"encoding/base64"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/runid"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/target"
)

// Setup is one scenario on one target. New makes it, Arrange installs what the scenario is given, Act of each
// case carries out its steps, and Uninstall ends it. The fields are for reading.
type Setup struct {
	// Case is the scenario with the steps of all its cases: what is arranged is for all of them.
	*Case
	// Cases are the cases of a PolicyTest. Another scenario is its only case.
	Cases []*Case
}

// Case is a scenario, or one of its cases.
type Case struct {
	Scenario scenario.Scenario
	// ID is the ID of the scenario in the run, and the name of its namespace.
	ID string
	// Given is what the scenario is given, without placeholders.
	Given []map[string]any
	// Unseen are the webhooks under test whose calls are not seen.
	Unseen expect.Unseen

	target target.Target
	// project is what is installed for all scenarios, or nil.
	project *shipped.Project
	// sandbox is nil before Arrange.
	sandbox target.Sandbox
	// begun is true if Arrange has installed something, or everything.
	begun bool
	// existing has the errors of Arrange about Scenario.Existing, by their index in Given.
	existing map[int]error
	// namespaces are the namespaces of the scenario, without placeholders.
	namespaces []scenario.Namespace
	// users are the names of the users that the scenario acts as.
	users map[string]bool
	// patience limits waits.
	patience time.Duration
	// hooks are the placeholders with the address of the Hook server.
	hooks map[string]any
	// inner is true for the steps of a parallel step or of a Meanwhile: the calls belong to
	// the outer step.
	inner bool
	// answers are the responses of the parallel step that this step is in.
	answers *answers
	// observe is called with each response. It can be nil.
	observe func(name string, result framework.Result)
	// path is the field path of the current step in the spec: "when[1]".
	path string

	*shared
}

// Options configure a Setup.
type Options struct {
	// Number is the number of the scenario on its target.
	Number int
	// Patience limits the wait of a step for something that the API server does in its own
	// time. 0 does not wait.
	Patience time.Duration
	// Unseen are the webhooks under test whose calls are not seen.
	Unseen expect.Unseen
	// Install is what is installed for all scenarios, or nil.
	Install *shipped.Project
	// Results is that of the options of the engine.
	Results func(name string, result framework.Result)
}

// shared is the state that the steps of a case share.
type shared struct {
	mu      sync.Mutex
	scripts map[string]hook.Script
	// results has the results of steps with an ID, as decoded JSON.
	results map[string]any
	// writes has the last write of each kind. See waitForCache.
	writes map[schema.GroupKind]written
	// seen are the objects that existed: they were given, or a response said so. See neverExisted.
	seen map[identity]bool
}

// New gives a scenario an ID and replaces the placeholders that are known before it
// runs. It is an error if one is unknown.
func New(s scenario.Scenario, on target.Target, options Options) (*Setup, error) {
	cases := scenario.Cases([]scenario.Scenario{s})
	s.Spec.When = nil
	for _, one := range cases {
		s.Spec.When = append(s.Spec.When, one.Spec.When...)
	}
	whole, err := newCase(s, on, options)
	if err != nil {
		return nil, err
	}
	if !s.IsPolicyTest() {
		return &Setup{Case: whole, Cases: []*Case{whole}}, nil
	}
	setup := &Setup{Case: whole}
	for _, one := range cases {
		c := *whole
		c.Scenario, c.shared = one, newShared()
		setup.Cases = append(setup.Cases, &c)
	}
	return setup, nil
}

// Keep removes the cases for which a function returns false. Nothing is arranged for them.
func (s *Setup) Keep(keep func(*Case) bool) {
	s.Cases = slices.DeleteFunc(s.Cases, func(c *Case) bool { return !keep(c) })
	var steps []scenario.Step
	for _, c := range s.Cases {
		steps = append(steps, c.Scenario.Spec.When...)
	}
	s.Scenario.Spec.When = steps
}

func newCase(s scenario.Scenario, on target.Target, options Options) (*Case, error) {
	c := &Case{
		Scenario: s, target: on, ID: runid.Scenario(on.RunID(), options.Number),
		users: map[string]bool{}, patience: options.Patience, project: options.Install, Unseen: options.Unseen, shared: newShared(),
		observe: options.Results,
	}
	for _, step := range s.Spec.When {
		c.addUsers(step)
	}
	if at := on.Optional().HookAddress; at != nil {
		c.hooks = map[string]any{
			"hooks.host": at.URLHost(), "hooks.port": int64(at.Port),
			"hooks.caBundle": base64.StdEncoding.EncodeToString(at.CABundle),
		}
	}
	var err error
	if c.namespaces, err = scenario.Replace(s.Spec.Namespaces, c.lookup); err != nil {
		return nil, fmt.Errorf("read namespaces: %w", err)
	}
	if c.Given, err = c.substituteGiven(s.Spec.Given); err != nil {
		return nil, fmt.Errorf("read given: %w", err)
	}
	hooks, err := scenario.Replace(s.Spec.Hooks, c.lookup)
	if err != nil {
		return nil, fmt.Errorf("read hooks: %w", err)
	}
	c.scripts = c.compile("hooks", hooks)
	return c, nil
}

func newShared() *shared {
	return &shared{results: map[string]any{}, writes: map[schema.GroupKind]written{}, seen: map[identity]bool{}}
}

// Open reports whether the scenario runs alone: what it installs is not narrowed.
func (c *Case) Open() bool { return c.Scenario.Alone }

// composer makes the requests of the steps.
func (c *Case) composer() Composer {
	return Composer{Namespace: c.ID, Namespaced: c.target.Namespaced}
}

// namespaced reports whether objects of a kind live in namespaces, before anything is installed: a
// CustomResourceDefinition that the scenario is given says it, or else the API server.
func (c *Case) namespaced(kind schema.GroupVersionKind) (bool, error) {
	for _, manifest := range c.Given {
		group, _, _ := unstructured.NestedString(manifest, "spec", "group")
		defined, _, _ := unstructured.NestedString(manifest, "spec", "names", "kind")
		if manifest["kind"] == "CustomResourceDefinition" && group == kind.Group && defined == kind.Kind {
			scope, _, _ := unstructured.NestedString(manifest, "spec", "scope")
			return scope == "Namespaced", nil
		}
	}
	return c.target.Namespaced(kind)
}

// kindOf returns the kind of a manifest, or the zero value.
func kindOf(manifest map[string]any) schema.GroupVersionKind {
	kind, _ := object.Kind(manifest)
	return kind
}
