// Package policycoverage finds which parts of policies the cases of a PolicyTest never decide. The cases run again
// with probes instead of the policies: copies that never deny, and whose warnings say which values the parts have. So an
// API server needs no changes, and its own evaluation is what counts.
package policycoverage

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/report"
)

// test is a PolicyTest: all scenarios that the loader made of it, which have the same policies.
type test struct {
	scenarios []scenario.Scenario
	policies  []*policy
	// seen has what was observed of each case, by its name.
	seen map[string]*observed
	// missed says of parts why they were not observed in some case.
	missed map[missed]string
}

// missed is a part of a policy, both by their number. All parts are -1.
type missed struct{ policy, part int }

// observed is what the warnings about one case say.
type observed struct {
	// evaluations has the messages of the probes of each policy, by the binding.
	evaluations map[evaluation]map[string]bool
	// cut is true if an API server may have left out warnings about a policy, by its number.
	cut map[int]bool
}

// evaluation is a policy, by its number, and one of its bindings, by its index in Spec.Given.
type evaluation struct{ policy, binding int }

// testsOf returns the PolicyTests among scenarios.
func testsOf(all []scenario.Scenario) []*test {
	var tests []*test
	for _, s := range all {
		if !s.IsPolicyTest() {
			continue
		}
		same := func(t *test) bool {
			first := t.scenarios[0]
			return first.Metadata.Name == s.Metadata.Name && first.File == s.File && first.Line == s.Line
		}
		if at := slices.IndexFunc(tests, same); at >= 0 {
			tests[at].scenarios = append(tests[at].scenarios, s)
			continue
		}
		tests = append(tests, &test{scenarios: []scenario.Scenario{s}, policies: policiesOf(s), seen: map[string]*observed{}, missed: map[missed]string{}})
	}
	return tests
}

// Measure runs the cases of the PolicyTests among the scenarios of options with probes, and returns what they never
// decide. Options.Skip applies; the outcomes of the cases do not matter.
func Measure(ctx context.Context, options engine.Options) ([]report.Coverage, error) {
	tests, err := observe(ctx, options)
	if err != nil {
		return nil, err
	}
	var all []report.Coverage
	for _, t := range tests {
		all = append(all, t.coverage())
	}
	return all, nil
}

// observe runs the cases with probes.
func observe(ctx context.Context, options engine.Options) ([]*test, error) {
	tests := testsOf(options.Scenarios)
	m := &measurement{copies: map[string]origin{}}
	for _, t := range tests {
		var probes []*probe
		for i, p := range t.policies {
			probes = append(probes, p.probes(i)...)
		}
		m.add(t, probes)
	}
	err := m.run(ctx, options)
	if err == nil && len(m.refused) > 0 {
		err = m.again(ctx, options)
	}
	return tests, err
}

// measurement is the run with probes.
type measurement struct {
	scenarios []scenario.Scenario
	// copies says of which case a copy is, by its name.
	copies map[string]origin
	number int

	mu      sync.Mutex
	refused []origin
}

// origin is what a copy of a case is made of.
type origin struct {
	test   *test
	name   string
	probes []*probe
}

// add adds copies of the scenarios of a test, each with some of the probes.
func (m *measurement) add(t *test, probes []*probe) {
	var bin []*probe
	parts := 0
	flush := func() {
		if len(bin) > 0 {
			m.copy(t, bin)
		}
		bin, parts = nil, 0
	}
	for i, p := range probes {
		if parts+len(p.observes)+1 > mostInProbes+1 || i > 0 && probes[i-1].of.GetKind() != p.of.GetKind() {
			flush()
		}
		bin, parts = append(bin, p), parts+len(p.observes)+1
	}
	flush()
}

// copy adds copies of the scenarios of a test, with probes instead of policies. ValidatingAdmissionPolicies see what
// MutatingAdmissionPolicies made of an object, so these stay for their probes.
func (m *measurement) copy(t *test, probes []*probe) {
	for _, s := range t.scenarios {
		m.number++
		var given []map[string]any
		existing := len(s.Spec.Given) - s.Existing
		for _, manifest := range s.Spec.Given[:existing] {
			u := unstructured.Unstructured{Object: manifest}
			kind := strings.TrimSuffix(u.GetKind(), "Binding")
			if u.GroupVersionKind().Group == group && (kind == validatingPolicy || kind == mutatingPolicy && probes[0].of.GetKind() == mutatingPolicy) {
				continue
			}
			given = append(given, manifest)
		}
		for i, p := range probes {
			given = append(given, p.manifests(s.Spec.Given, i)...)
		}
		s.Spec.Given = append(given, s.Spec.Given[existing:]...)
		prefix := fmt.Sprintf("coverage-%d.", m.number)
		s.Metadata.Name = prefix + s.Metadata.Name
		s.Cases = slices.Clone(s.Cases)
		for i := range s.Cases {
			c := &s.Cases[i]
			m.copies[prefix+c.Name] = origin{t, c.Name, probes}
			c.Name, c.Needs, c.When = prefix+c.Name, nil, slices.Clone(c.When)
			for j := range c.When {
				c.When[j].Then = nil
			}
		}
		m.scenarios = append(m.scenarios, s)
	}
}

// run runs the copies.
func (m *measurement) run(ctx context.Context, options engine.Options) error {
	skip := map[string]string{}
	for name, of := range m.copies {
		if reason, ok := options.Skip[of.name]; ok {
			skip[name] = reason
		}
	}
	options.Scenarios, options.Skip, options.KnownFailing, options.Rerun, options.Results = m.scenarios, skip, nil, nil, m.note
	options.Progress = onlyStages(options.Progress)
	result, err := engine.Run(ctx, options)
	if err != nil {
		return fmt.Errorf("measure coverage: %w", err)
	}
	for _, outcome := range result.Outcomes {
		of := m.copies[outcome.Name]
		switch outcome.Verdict {
		case framework.Pass, framework.Fail, framework.Skipped: // the request of a fail was answered
			continue
		}
		m.refused = append(m.refused, of)
		for _, p := range of.probes {
			if len(p.observes) == 0 {
				of.test.miss(missed{p.number, -1}, reasonOf(outcome))
			}
			for _, each := range p.observes {
				of.test.miss(missed{p.number, each.part}, reasonOf(outcome))
			}
		}
	}
	return nil
}

// sameReason begins the reason of all cases but one, if what they need cannot be installed.
const sameReason = "setup: this case uses the same policies as "

// miss notes that a part was not observed.
func (t *test) miss(part missed, reason string) {
	if t.missed[part] == "" || !strings.HasPrefix(reason, sameReason) {
		t.missed[part] = reason
	}
}

// onlyStages returns a Progress without the outcomes of copies.
func onlyStages(of engine.Progress) engine.Progress {
	if of == nil {
		return nil
	}
	return stages{of}
}

type stages struct{ engine.Progress }

// Done does nothing.
func (stages) Done(report.Outcome) {}

func reasonOf(outcome report.Outcome) string {
	return cmp.Or(report.FirstLine(outcome.Reason), string(outcome.Verdict))
}

// again observes each part with a probe of its own where several were not observed: one part that an API server does not compile
// must not hide the others.
func (m *measurement) again(ctx context.Context, options engine.Options) error {
	next := &measurement{copies: map[string]origin{}, number: m.number}
	done := map[*probe]bool{}
	for _, of := range m.refused {
		for _, p := range of.probes {
			if done[p] {
				continue
			}
			done[p] = true
			delete(of.test.missed, missed{p.number, -1})
			for _, one := range p.split() {
				for _, each := range one.observes {
					delete(of.test.missed, missed{p.number, each.part})
				}
				next.copy(of.test, []*probe{one})
			}
		}
	}
	return next.run(ctx, options)
}

// aboutProbe matches the warning of a probe. An API server puts the ID of the scenario before the names.
var aboutProbe = regexp.MustCompile(`^Validation failed for ValidatingAdmissionPolicy '(?:.*-)?p(\d+)-\d+' with binding '(?:.*-)?b(\d+)-\d+': (.*)$`)

// mostWarnings is the length at which an API server begins to cut warnings (k8s.io/apiserver/pkg/endpoints/filters/warning.go).
const mostWarnings = 4096 - 256

// note notes the warnings of one request.
func (m *measurement) note(name string, result framework.Result) {
	of, known := m.copies[name]
	if !known {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := of.test.seen[of.name]
	if seen == nil {
		seen = &observed{evaluations: map[evaluation]map[string]bool{}, cut: map[int]bool{}}
		of.test.seen[of.name] = seen
	}
	total, cut := 0, false
	for _, text := range result.Warnings {
		total += len(text)
		cut = cut || strings.Contains(text, "cost budget")
		found := aboutProbe.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		number, _ := strconv.Atoi(found[1])
		binding, _ := strconv.Atoi(found[2])
		at := evaluation{number, binding}
		if seen.evaluations[at] == nil {
			seen.evaluations[at] = map[string]bool{}
		}
		seen.evaluations[at][found[3]] = true
	}
	if cut || total > mostWarnings {
		for _, p := range of.probes {
			seen.cut[p.number] = true
		}
	}
}
