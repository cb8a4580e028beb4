package rules

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// factoryRules returns the rules for the factory and its configuration.
func factoryRules() []check.Rule {
	return append([]check.Rule{
		{
			ID: "K1", Name: "bad-configuration-is-refused", Level: framework.Must,
			Title:  "The factory refuses a configuration that it cannot read or parse. It does not panic, hang, or continue without it.",
			Why:    "These are defects of real plugins: a missing configuration crashed the API server; a configuration that could not be parsed was ignored, so the plugin ran without its limits; a reader that returned errors was read forever.",
			Fix:    "Return every error from reading and parsing. Only a nil reader or an empty text means that there is no configuration.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/55378", "https://github.com/kubernetes/kubernetes/issues/35506"},
			Check:  checkConfigs,
		},
		{
			ID: "K2", Name: "unknown-configuration-fields-are-refused", Level: framework.Should,
			Title:  "The factory refuses a configuration with an unknown field, or with the same field twice.",
			Why:    "If a field name is misspelt, its limit is not applied, and there is no error.",
			Fix:    "Decode with yaml.UnmarshalStrict or serializer.EnableStrict.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/127940", "https://github.com/kubernetes/kubernetes/issues/128013"},
			Check:  checkStrictConfigs,
		},
	}, instanceRules()...)
}

// maxFailedReads is how often a factory may read from a reader that fails. After more reads it
// counts as hanging.
const maxFailedReads = 1000

// feed is a configuration as a factory reads it. It ends the goroutine of a factory that does
// not stop reading.
type feed struct {
	io.Reader
	hung chan struct{}
	end  func()

	mu     sync.Mutex
	failed int
}

func newFeed(from io.Reader) *feed {
	f := &feed{Reader: from, hung: make(chan struct{})}
	f.end = sync.OnceFunc(func() { close(f.hung) })
	return f
}

// Read implements io.Reader.
func (f *feed) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.failed++
	}
	select {
	case <-f.hung:
		runtime.Goexit() // the check no longer waits for the factory
	default:
	}
	if f.failed > maxFailedReads {
		f.end()
		runtime.Goexit()
	}
	return n, err
}

// failing is a reader that always fails.
type failing struct{}

func (failing) Read([]byte) (int, error) {
	return 0, errors.New("read configuration: this test makes it fail")
}

// built is the result of a factory.
type built struct {
	plugin admission.Interface
	err    error
	hung   bool
}

// buildFrom calls the factory with a configuration and a time limit. Nil means no configuration.
func buildFrom(t *check.T, config io.Reader) built {
	var given io.Reader
	watched := newFeed(config)
	switch config.(type) {
	case nil, *os.File:
		given = config // the factory must get the nil itself
	default:
		given = watched
	}
	done := make(chan built, 1)
	go func() {
		var one built
		defer func() { done <- one }()
		one.plugin, one.err = t.Subject.Source.Plugin(given)
	}()
	ctx, _, cancel := rule.WithLimit(t.Context(), patience)
	defer cancel()
	select {
	case one := <-done:
		select {
		case <-watched.hung:
			return built{hung: true}
		default:
			return one
		}
	case <-watched.hung:
		return built{hung: true}
	case <-ctx.Done():
		watched.end()
		return built{hung: true}
	}
}

// configCase is a configuration and the expected result.
type configCase struct {
	name   string
	config func() io.Reader
	expect expectation
}

type expectation int

const (
	anything expectation = iota // any result except a panic or a hang
	refused
	accepted
)

func text(s string) func() io.Reader { return func() io.Reader { return strings.NewReader(s) } }

// validConfigurations returns the configurations that the factory must accept according to the
// Subject.
func validConfigurations(s check.Subject) []string {
	var all []string
	for _, config := range append([]string{s.Config}, s.Configs.Valid...) {
		if config != "" && !slices.Contains(all, config) {
			all = append(all, config)
		}
	}
	return all
}

// configurationCases returns the configurations with which the factory is called.
func configurationCases(s check.Subject) []configCase {
	unreadable, missing := anything, anything
	valid := validConfigurations(s)
	whole := "a: 1\nb: 2\n"
	if len(valid) > 0 {
		unreadable, whole = refused, valid[0]
	}
	if s.Configs.Required {
		missing = refused
	}
	half := whole[:len(whole)/2]
	cases := []configCase{
		{"no configuration (a nil reader)", func() io.Reader { return nil }, missing},
		{"a nil *os.File", func() io.Reader { return (*os.File)(nil) }, anything},
		{"an empty configuration", text(""), missing},
		{"a configuration of white space", text(" \n\n"), anything},
		{"a configuration that is not YAML", text("{\"a\": [1, 2\n\t: }}} not a configuration\n"), unreadable},
		{"a binary configuration", text("\x00\x01\x02\xff\xfe\x7fELF\x00"), unreadable},
		{"the first half of a valid configuration", text(half), anything},
		{"a reader that fails", func() io.Reader { return failing{} }, unreadable},
		{"a reader that fails after the first half", func() io.Reader { return io.MultiReader(strings.NewReader(half), failing{}) }, unreadable},
		{"20,000 brackets", text(strings.Repeat("[", 20000)), anything},
	}
	for _, config := range valid {
		cases = append(cases, configCase{fmt.Sprintf("the valid configuration %q", config), text(config), accepted})
	}
	for _, config := range s.Configs.Invalid {
		cases = append(cases, configCase{fmt.Sprintf("the invalid configuration %q", config), text(config), refused})
	}
	return cases
}

func checkConfigs(t *check.T) {
	for _, one := range configurationCases(t.Subject) {
		got := buildFrom(t, one.config())
		t.Reached()
		thrown, isPanic := check.AsPanic(got.err)
		switch {
		case got.hung:
			t.Errorf("with %s the factory did not return, want an error", one.name)
			return // each configuration may take as long
		case isPanic:
			t.Errorf("with %s: %v", one.name, thrown)
		case one.expect == refused && got.err == nil:
			t.Errorf("with %s the factory returned a plugin, want an error", one.name)
		case one.expect == accepted && got.err != nil:
			t.Errorf("with %s the factory returned an error, want a plugin: %v", one.name, got.err)
		}
	}
}

// unknownField is a field that no configuration has.
const unknownField = "admissiontestUnknownField"

// altered returns a configuration with an unknown field, and with a field twice. It returns
// false if the configuration is not exactly one YAML or JSON object.
func altered(config string) (plain, unknown, twice string, ok bool) {
	fields := map[string]any{}
	if strings.Contains(config, "\n---") || yaml.Unmarshal([]byte(config), &fields) != nil || len(fields) == 0 {
		return "", "", "", false
	}
	data, err := yaml.Marshal(fields)
	if err != nil {
		return "", "", "", false
	}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	// The last field is not apiVersion or kind, which other code reads: these come first.
	last := names[len(names)-1]
	again, err := yaml.Marshal(map[string]any{last: fields[last]})
	if err != nil {
		return "", "", "", false
	}
	plain = string(data)
	return plain, plain + unknownField + ": 1\n", plain + string(again), true
}

func checkStrictConfigs(t *check.T) {
	valid := validConfigurations(t.Subject)
	if len(valid) == 0 {
		t.Unsupported("the Subject has no configuration")
	}
	for _, config := range valid {
		plain, unknown, twice, ok := altered(config)
		if !ok {
			t.Logf("ignored configuration %q: it is not one YAML object", config)
			continue
		}
		if got := buildFrom(t, strings.NewReader(plain)); got.hung || got.err != nil {
			t.Logf("ignored configuration %q: the factory refuses it in the form %q", config, plain)
			continue
		}
		t.Reached()
		for what, config := range map[string]string{"an unknown field": unknown, "the same field twice": twice} {
			if got := buildFrom(t, strings.NewReader(config)); got.err == nil && !got.hung {
				t.Errorf("the factory accepted a configuration with %s, want an error: use yaml.UnmarshalStrict or serializer.EnableStrict\n%s", what, config)
			}
		}
	}
}
