package policymutants

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// mostTried limits the requests that are tried for a survivor.
const mostTried = 40

// request is a request of a case with one change.
type request struct {
	scenario int // its index in the test
	of       scenario.Case
	name     string
	// object is what is sent, and old what exists before an UPDATE, or nil.
	object, old map[string]any
	// as it is, twice, and by the mutants, what the API server answers.
	unchanged [2]*answer
	mutants   map[*mutantRun]*answer
}

// answer is what an API server answers to a request, apart from what it chooses itself.
type answer struct {
	allowed bool
	// denied is the message of a refusal by a policy, or "".
	denied   string
	warnings []string
	object   map[string]any
}

// finding is the search for cases that notice survivors.
type finding struct {
	copies []scenario.Scenario
	// into has where the answer to a copy of a request is put, by its name.
	into map[string]func(*answer)
	mu   sync.Mutex
}

// findCases looks for cases that notice survivors: requests of the cases with one change each, of what the changed expression
// names. Each is sent with the mutant, and twice with the unchanged policies: an answer that differs there says nothing. The survivors
// of a test follow each other.
func findCases(ctx context.Context, options engine.Options, survivors []*mutantRun) error {
	f := &finding{into: map[string]func(*answer){}}
	tried := map[*mutantRun][]*request{}
	for left := survivors; len(left) > 0; {
		t := left[0].test
		known := map[string]*request{} // by what is sent
		var all []*request
		for ; len(left) > 0 && left[0].test == t; left = left[1:] {
			run := left[0]
			tried[run] = run.requests(known)
			f.send(t, run, tried[run], func(r *request, a *answer) { r.mutants[run] = a })
			for _, r := range tried[run] {
				if !slices.Contains(all, r) {
					all = append(all, r)
				}
			}
		}
		for i := range 2 {
			f.send(t, nil, all, func(r *request, a *answer) { r.unchanged[i] = a })
		}
	}
	if len(f.copies) == 0 {
		return nil
	}
	options = quietly(options, f.copies, "looking for cases that notice the survivors")
	options.Results = f.note
	if _, err := engine.Run(ctx, options); err != nil {
		return fmt.Errorf("find cases: %w", err)
	}
	for _, run := range survivors {
		for _, r := range tried[run] {
			if found := r.notices(run); found != nil && !r.hasSecrets() {
				run.into.Survivors[run.survivor].Case = found
				break
			}
		}
	}
	return nil
}

// requests returns what is tried for a survivor. Several survivors can try the same.
func (r *mutantRun) requests(known map[string]*request) []*request {
	if r.expression == "" {
		return nil // a rule, a selector or a setting
	}
	policy := unescaped(r.test.scenarios[0].Spec.Given[r.index])
	variables, expressions := map[string]string{}, []string{r.expression}
	for _, field := range []string{"variables", "validations"} {
		list, _, _ := unstructured.NestedSlice(policy.Object, "spec", field)
		for _, each := range list {
			fields, _ := each.(map[string]any)
			name, _, _ := unstructured.NestedString(fields, "name")
			text, _, _ := unstructured.NestedString(fields, "expression")
			if name != "" {
				variables[name] = text
			} else if strings.HasPrefix(r.field, "spec.variables") {
				expressions = append(expressions, text)
			}
		}
	}
	v := vary.NewVarier(variables, []string{cmp.Or(r.part, r.expression), r.new}, expressions)
	var bases []*request
	for i, s := range r.test.scenarios {
		for _, c := range s.Cases {
			if base := baseOf(s, i, c); base != nil && len(bases) < mostTried {
				bases = append(bases, base)
			}
		}
	}
	changes := make([][]vary.Variation, len(bases))
	most := 0
	for i, base := range bases {
		changes[i] = v.Variations(base.object)
		most = max(most, len(changes[i]))
	}
	var tried []*request
	for n := range most { // in turns of the cases, so that each has a part
		for i, base := range bases {
			if n < len(changes[i]) && len(tried) < mostTried {
				if one := base.with(changes[i][n], known); !slices.Contains(tried, one) {
					tried = append(tried, one)
				}
			}
		}
	}
	return tried
}

// baseOf returns the request of a case, or nil if it is a DELETE, or if the scenario cannot run beside others.
func baseOf(s scenario.Scenario, index int, c scenario.Case) *request {
	if s.Spec.Isolation == scenario.IsolationNone || s.Spec.Exclusive {
		return nil
	}
	step := c.When[len(c.When)-1]
	base := &request{scenario: index, of: c, name: strings.TrimPrefix(c.Name, s.Metadata.Name+".")}
	switch {
	case step.Create != nil:
		base.object = step.Create
	case step.Patch != nil && step.Patch.Merge != nil:
		for _, manifest := range s.Spec.Given[len(s.Spec.Given)-s.Existing:] {
			u := unstructured.Unstructured{Object: manifest}
			if u.GetKind() == step.Patch.Kind && u.GetName() == step.Patch.Name && (step.Patch.Namespace == nil || u.GetNamespace() == *step.Patch.Namespace) {
				base.old = manifest
			}
		}
		if base.old != nil {
			base.object = vary.Patched(base.old, step.Patch.Merge)
		}
	}
	if base.object == nil {
		return nil
	}
	return base
}

// with returns a copy of the request with one change.
func (r *request) with(change vary.Variation, known map[string]*request) *request {
	one := &request{scenario: r.scenario, of: r.of, name: r.name + " " + change.What, object: change.Object, old: r.old, mutants: map[*mutantRun]*answer{}}
	key, err := json.Marshal([]any{one.scenario, one.old, one.of.When[len(one.of.When)-1].As, one.object})
	if err != nil {
		return one // it cannot be sent, and has no answer
	}
	if known[string(key)] == nil {
		known[string(key)] = one
	}
	return known[string(key)]
}

// send adds copies of requests, with a mutant or, if that is nil, with the unchanged policies.
func (f *finding) send(t *test, run *mutantRun, all []*request, into func(*request, *answer)) {
	for i, s := range t.scenarios {
		var cases []scenario.Case
		for _, r := range all {
			if r.scenario != i {
				continue
			}
			c := r.of
			c.Name, c.Needs, c.When = fmt.Sprintf("tried-%d", len(f.into)), nil, slices.Clone(c.When)
			step := &c.When[len(c.When)-1]
			step.Then = nil
			if r.old == nil {
				step.Create = r.object
			} else {
				patch := *step.Patch
				patch.Merge, step.Patch = object.MergePatch(r.old, r.object), &patch
			}
			f.into[c.Name] = func(a *answer) { into(r, a) }
			cases = append(cases, c)
		}
		if len(cases) == 0 {
			continue
		}
		s.Metadata.Name = fmt.Sprintf("tried-%d.%s", len(f.copies), s.Metadata.Name)
		s.Cases = cases
		if run != nil {
			s.Spec.Given = slices.Clone(s.Spec.Given)
			s.Spec.Given[run.index] = run.manifest
		}
		f.copies = append(f.copies, s)
	}
}

// note notes the answer to one request.
func (f *finding) note(name string, result framework.Result) {
	if code := result.Status.Code; code == 0 || code == http.StatusTooManyRequests || code >= http.StatusInternalServerError {
		return // the API server did not decide
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if into := f.into[name]; into != nil {
		into(answerOf(result))
	}
}

// aboutPolicy matches what a response says about a policy, whose name differs between the copies of a scenario.
var aboutPolicy = regexp.MustCompile(`(?s)ValidatingAdmissionPolicy '[^']*' with binding '[^']*'(?: denied request)?: (.*)$`)

func answerOf(result framework.Result) *answer {
	a := &answer{allowed: result.Allowed()}
	if found := aboutPolicy.FindStringSubmatch(result.Status.Message); found != nil && !a.allowed {
		a.denied = found[1]
	}
	for _, text := range result.Warnings {
		if found := aboutPolicy.FindStringSubmatch(text); found != nil {
			a.warnings = append(a.warnings, found[1])
		}
	}
	slices.Sort(a.warnings)
	if text, err := json.Marshal(result.Fields()); err == nil {
		_ = json.Unmarshal(vary.WithoutTokens(text), &a.object)
	}
	metadata, _ := a.object["metadata"].(map[string]any)
	for _, set := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "namespace"} {
		delete(metadata, set)
	}
	return a
}

// notices returns the request as a case that notices a survivor, or nil if it does not.
func (r *request) notices(run *mutantRun) map[string]any {
	as, again, with := r.unchanged[0], r.unchanged[1], r.mutants[run]
	if as == nil || with == nil || !reflect.DeepEqual(as, again) || reflect.DeepEqual(as, with) {
		return nil
	}
	found := map[string]any{"name": r.name}
	switch {
	case !as.allowed && (!with.allowed || as.denied == "" || strings.Contains(as.denied, "resulted in error")):
		return nil // an error is no behaviour to expect, and which of several refusals the API server names is not either
	case !as.allowed:
		found["denied"] = map[string]any{"message": as.denied}
	case !with.allowed:
		found["allowed"] = true
	case !slices.Equal(as.warnings, with.warnings) && len(as.warnings) > 0:
		found["warned"] = as.warnings
	case !slices.Equal(as.warnings, with.warnings):
		found["warned"] = false
	case !strings.HasPrefix(fmt.Sprint(run.manifest["kind"]), "MutatingAdmissionPolicy"):
		return nil // something else has changed the object
	default:
		found["mutated"] = vary.Expected(with.object, as.object)
	}
	step := r.of.When[len(r.of.When)-1]
	if step.As != nil {
		found["as"] = step.As
	}
	manifest, namespace := written(r.object)
	found["object"] = manifest
	if namespace != "" {
		found["namespace"] = namespace
	}
	if r.old != nil {
		found["old"], _ = written(r.old)
	}
	if step.Subresource != "" {
		found["subresource"] = step.Subresource
	}
	return found
}

// hasSecrets reports whether a report does not show values of the request: of a Secret, or of the extra fields of a user.
func (r *request) hasSecrets() bool {
	user := r.of.When[len(r.of.When)-1].As
	return user != nil && len(user.Extra) > 0 || redact.HoldsSecrets(map[string]any{"kind": map[string]any{"kind": r.object["kind"]}})
}

// written returns an object as in a PolicyTest, and its namespace there.
func written(manifest map[string]any) (map[string]any, string) {
	copied := unescaped(manifest).Object
	metadata, _ := copied["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	name, is := strings.CutPrefix(namespace, "$(namespace.")
	if !is {
		return copied, ""
	}
	delete(metadata, "namespace")
	return copied, strings.TrimSuffix(name, ")")
}
