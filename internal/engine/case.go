package engine

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/runid"
	"github.com/admissiontest/admissiontest/internal/target"
)

// scenarioCase is one scenario on one target.
type scenarioCase struct {
	scenario scenario.Scenario
	target   target.Target
	// sandbox is nil before arrange.
	sandbox target.Sandbox
	id      string
	// namespaces and given are those of the scenario, without placeholders.
	namespaces []scenario.Namespace
	given      []map[string]any
	// users are the names of the users that the scenario acts as.
	users map[string]bool
	// patience limits waits.
	patience time.Duration
	// hooks are the placeholders with the address of the Hook server.
	hooks map[string]any
	// showSecrets is true if mismatches show all values.
	showSecrets bool
	// unseen are the webhooks under test whose calls are not seen.
	unseen unseen
	// inner is true for the steps of a parallel step or of a Meanwhile: the calls belong to
	// the outer step.
	inner bool
	// answers are the responses of the parallel step that this step is in.
	answers *answers
	// place is the place of the current step in the spec: "when[1]".
	place string

	*shared
}

// shared is the state that the steps of a case share.
type shared struct {
	mu      sync.Mutex
	scripts map[string]hook.Script
	// results has the results of steps with an ID, as decoded JSON.
	results map[string]any
	// secrets are the values that reports do not show.
	secrets redact.Set
	// writes has the last write of each kind. See waitForCache.
	writes map[schema.GroupKind]written
}

// newCase gives a scenario an ID and replaces the placeholders that are known before it
// runs.
func (r *run) newCase(s scenario.Scenario, target target.Target, number int) (*scenarioCase, error) {
	c := &scenarioCase{
		scenario: s, target: target, id: runid.Scenario(target.RunID(), number),
		users: map[string]bool{}, patience: r.options.Patience, shared: newShared(), showSecrets: r.options.ShowSecrets,
		unseen: unseenWebhooks(s, r.options.Endpoints, r.options.Install.Objects()),
	}
	for _, step := range s.Spec.When {
		c.addUsers(step)
	}
	if at := target.Optional().HookAddress; at != nil {
		c.hooks = map[string]any{
			"hooks.host": at.URLHost(), "hooks.port": int64(at.Port),
			"hooks.caBundle": base64.StdEncoding.EncodeToString(at.CABundle),
		}
	}
	var err error
	if c.namespaces, err = substitute(s.Spec.Namespaces, c.lookup); err != nil {
		return c, fmt.Errorf("read namespaces: %w", err)
	}
	given, err := c.substituteGiven(s.Spec.Given)
	if err != nil {
		return c, fmt.Errorf("read given: %w", err)
	}
	c.given = given
	r.noteSecrets(c)
	hooks, err := substitute(s.Spec.Hooks, c.lookup)
	if err != nil {
		return c, fmt.Errorf("read hooks: %w", err)
	}
	c.scripts = c.compile(hooks)
	return c, nil
}

func newShared() *shared {
	return &shared{results: map[string]any{}, writes: map[schema.GroupKind]written{}}
}

// addUsers adds the users that a step acts as.
func (c *scenarioCase) addUsers(step scenario.Step) {
	if step.As != nil {
		c.users[strings.NewReplacer("$(id)", c.id, "$(namespace)", c.id).Replace(step.As.Name)] = true
	}
	for _, inner := range step.Parallel {
		c.addUsers(inner)
	}
}

// ownUser reports whether requests of a user can belong to the scenario. On a cluster
// controllers write to its namespaces too, and only their requests do not count: what an
// API server says of the user can be what the scenario tests.
func (c *scenarioCase) ownUser(name string) bool {
	info := c.target.Info()
	if c.open() && name == apiServerUser && !c.users[name] {
		return false // it writes Leases, for instance
	}
	if info.Kind == framework.TargetEnvtest || name == info.User || c.users[name] {
		return true // on target envtest there are no controllers
	}
	return !isController(name) || runid.Has(name, c.id)
}

// apiServerUser is the user of the requests that an API server sends to itself.
const apiServerUser = "system:apiserver"

// isController reports whether a user is a component of Kubernetes or a workload of the
// cluster, by the names that Kubernetes reserves. See
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings
func isController(name string) bool {
	switch name {
	case apiServerUser, "system:kube-controller-manager", "system:cloud-controller-manager", "system:kube-scheduler", "system:kube-proxy":
		return true
	default:
		return strings.HasPrefix(name, "system:serviceaccount:") || strings.HasPrefix(name, "system:node:")
	}
}

// lookup returns the value of a placeholder.
func (c *scenarioCase) lookup(name string) (any, bool) {
	switch name {
	case "id", "namespace":
		return c.id, true
	case "run":
		return runid.Prefix(c.target.RunID()), true
	}
	if value, ok := c.hooks[name]; ok {
		return value, true
	}
	if policy, ok := strings.CutPrefix(name, "policy."); ok {
		return c.policyName(policy), c.hasPolicy(policy)
	}
	if short, ok := strings.CutPrefix(name, "namespace."); ok {
		return c.namespaceName(short), slices.ContainsFunc(c.scenario.Spec.Namespaces, func(n scenario.Namespace) bool { return n.Name == short })
	}
	path, ok := strings.CutPrefix(name, "steps.")
	if !ok {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return walk(c.results, path)
}

// policyName returns the name on the API server of a policy or binding of the scenario.
func (c *scenarioCase) policyName(name string) string {
	if c.open() {
		return name
	}
	return c.id + "-" + name
}

// hasPolicy reports whether the scenario installs a policy or a binding of that name.
func (c *scenarioCase) hasPolicy(name string) bool {
	manifests := slices.Clone(c.scenario.Spec.Given)
	for _, step := range c.scenario.Spec.When {
		manifests = append(manifests, step.Install...)
	}
	return slices.ContainsFunc(manifests, func(manifest map[string]any) bool {
		metadata, _ := manifest["metadata"].(map[string]any)
		return isPolicy(manifest) && metadata["name"] == name
	})
}

// namespaceName returns the name on the API server of one of spec.namespaces.
func (c *scenarioCase) namespaceName(short string) string { return c.id + "-" + short }

// compile returns the scripts of the Hooks of a scenario.
func (c *scenarioCase) compile(hooks map[string]scenario.Hook) map[string]hook.Script {
	scripts := map[string]hook.Script{}
	for name, h := range hooks {
		replies := h.Replies
		if len(replies) == 0 {
			replies = []scenario.Reply{h.Reply}
		}
		var script hook.Script
		for _, reply := range replies {
			compiled := reply.Reply
			if len(reply.Meanwhile) > 0 {
				compiled.Meanwhile = func() error { return c.meanwhile(reply.Meanwhile) }
			}
			script.Replies = append(script.Replies, compiled)
		}
		scripts[name] = script
	}
	return scripts
}

// currentScripts returns the scripts as the steps so far set them.
func (c *scenarioCase) currentScripts() map[string]hook.Script {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.scripts)
}

// meanwhile runs steps while a webhook is called. Their expectations apply to the
// responses; the calls belong to the outer step.
func (c *scenarioCase) meanwhile(steps []scenario.Step) error {
	ctx, cancel := context.WithTimeout(context.Background(), stepLimit)
	defer cancel()
	for i, step := range steps {
		failure := c.innerStep(ctx, step, "")
		if failure == nil {
			continue
		}
		if cause := c.nothingAboutAdmission(failure); cause != "" {
			return fmt.Errorf("step %d meanwhile: %s: %w: %s", i+1, failure.action, errInfrastructure, cause)
		}
		if failure.err != nil {
			return fmt.Errorf("step %d meanwhile: %s: %w", i+1, failure.action, failure.err)
		}
		for k := range failure.mismatches {
			failure.mismatches[k].Path = fmt.Sprintf("meanwhile[%d] %s: %s", i, failure.action, failure.mismatches[k].Path)
		}
		return &mismatchError{failure.mismatches}
	}
	return nil
}

// unsupported returns why the target cannot run the scenario, or "".
func unsupported(s scenario.Scenario, info framework.TargetInfo) string {
	if reason := tooOld(s, info.ServerVersion); reason != "" {
		return reason
	}
	if reason := gateOff(s, info.FeatureGates); reason != "" {
		return reason
	}
	if s.ObservesPlugins() && !slices.Contains(info.Capabilities, framework.CapabilityObservedPlugins) {
		return "it expects calls of admission plugins, which this API server does not record: only a kube-apiserver that \"admissiontest assets build\" built does, on target envtest"
	}
	for _, need := range s.Spec.Needs {
		if !strings.HasPrefix(need, framework.PluginPrefix) && !slices.Contains(info.Capabilities, need) {
			return fmt.Sprintf("needs %s, which this target does not have", need)
		}
	}
	return ""
}

// gateOff returns why a server that is not too old lacks the feature of the scenario, or "".
// Nil gates are not known. A server does not list a gate any more after its feature is
// generally available and the gate was removed. So a gate that is not listed counts as on
// since the version of the scenario; a scenario without a version does not say whether the
// server is older than the gate or newer.
func gateOff(s scenario.Scenario, gates map[string]bool) string {
	gate := s.Spec.FeatureGate
	if gate == "" || gates == nil {
		return ""
	}
	switch enabled, listed := gates[gate]; {
	case enabled, !listed && s.Spec.Since != "":
		return ""
	case !listed:
		return fmt.Sprintf("needs feature gate %s, which the server does not list; if its feature is always on there, set since in the scenario", gate)
	default:
		return fmt.Sprintf("needs feature gate %s, which is disabled on the server", gate)
	}
}

// tooOld returns why a server of a version ("v1.36.3") cannot run the scenario, or "".
func tooOld(s scenario.Scenario, server string) string {
	if s.Spec.Since == "" {
		return ""
	}
	have, err := version.ParseGeneric(server)
	if err != nil {
		return fmt.Sprintf("needs Kubernetes %s; the version of the server is not known: %v", s.Spec.Since, err)
	}
	want, err := version.ParseGeneric(s.Spec.Since)
	if err != nil {
		return fmt.Sprintf("needs Kubernetes %s, which is not a version: %v", s.Spec.Since, err)
	}
	if have.AtLeast(want) {
		return ""
	}
	return fmt.Sprintf("needs Kubernetes %s, the server is %s", s.Spec.Since, server)
}

// namespaced reports whether a manifest is of a kind that lives in namespaces.
func (c *scenarioCase) namespaced(manifest map[string]any) bool {
	namespaced, err := c.target.Namespaced(kindOf(manifest))
	return err == nil && namespaced
}

// kindOf returns the kind of a manifest, or the zero value.
func kindOf(manifest map[string]any) schema.GroupVersionKind {
	kind, _ := object.Kind(manifest)
	return kind
}

// needsAccount reports whether a text names what needs a ServiceAccount, in any case. A TokenRequest is one
// for a ServiceAccount by default.
func needsAccount(text []byte) bool {
	text = bytes.ToLower(text)
	return slices.ContainsFunc([]string{"pod", "serviceaccount", "tokenrequest"}, func(word string) bool { return bytes.Contains(text, []byte(word)) })
}

// noAccounts reports whether the scenario names neither Pods nor ServiceAccounts. The scenarios of one
// installation share a namespace, which has one.
func (c *scenarioCase) noAccounts() bool {
	text, err := json.Marshal([]any{c.scenario.Spec, c.given})
	return err == nil && c.scenario.Installation == "" && !needsAccount(text)
}

// arrange creates the sandbox and installs what is given: first what configurations can
// refer to, then the configurations, and then the bindings, because an effective policy
// can refuse the configurations that follow it.
func (c *scenarioCase) arrange(ctx context.Context) error {
	options := target.SandboxOptions{ID: c.id, Users: c.ownUser, Open: c.open(), Labelled: c.scenario.Installation != "", NoAccounts: c.noAccounts()}
	if conversion := c.scenario.Spec.Conversion; conversion != nil {
		options.Conversion = *conversion
	}
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
		for i, manifest := range c.given {
			if stageOf(manifest) != stage {
				continue
			}
			if err := c.installGiven(ctx, fmt.Sprintf("given[%d]", i), manifest); err != nil {
				return err
			}
		}
	}
	return nil
}

// installGiven installs a manifest at a place in the spec: "given[1]".
func (c *scenarioCase) installGiven(ctx context.Context, place string, manifest map[string]any) error {
	err := c.asMistake(c.sandbox.Install(ctx, manifest, c.currentScripts()), place, manifest)
	if err == nil || isMistake(err) {
		return err
	}
	return fmt.Errorf("install %s %s: %w", place, describe(manifest), err)
}

// manifestOf returns the manifest of one of spec.namespaces.
func (c *scenarioCase) manifestOf(namespace scenario.Namespace) map[string]any {
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

// stages is the number of stages of arrange. stageOf returns the stage of a manifest.
const stages = 3

func stageOf(manifest map[string]any) int {
	switch {
	case !isAdmission(manifest):
		return 0
	case !strings.HasSuffix(kindOf(manifest).Kind, "Binding"):
		return 1
	default:
		return 2
	}
}

func isAdmission(manifest map[string]any) bool {
	return kindOf(manifest).Group == "admissionregistration.k8s.io"
}

// describe names a manifest: "ConfigMap subject".
func describe(manifest map[string]any) string {
	kind, _ := manifest["kind"].(string)
	metadata, _ := manifest["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if name == "" {
		name, _ = metadata["generateName"].(string)
	}
	return strings.TrimSpace(kind + " " + name)
}
