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
	"time"

	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// configProperties returns the properties of factories and what they are given.
func factoryRules() []check.Rule {
	return append([]check.Rule{
		{
			ID: "K1", Name: "bad-configuration-is-refused", Level: framework.Must,
			Title:  "A factory refuses a configuration that it cannot read or does not understand; it neither panics, nor hangs, nor goes on without it.",
			Why:    "A missing configuration crashed the API server; one that could not be parsed was passed over, and the plugin ran without the limits that its operator had written; a reader that failed was read for ever.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/55378", "https://github.com/kubernetes/kubernetes/issues/35506"},
			Check:  checkConfigs,
		},
		{
			ID: "K2", Name: "unknown-configuration-fields-are-refused", Level: framework.Should,
			Title:  "A factory refuses a configuration with a field that it does not know, or with a field twice.",
			Why:    "A misspelt field is a limit that is silently not there.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/127940", "https://github.com/kubernetes/kubernetes/issues/128013"},
			Check:  checkStrictConfigs,
		},
	}, instanceRules()...)
}

// readsToHang is after how many reads of a reader that fails a factory is taken to go on
// for ever.
const readsToHang = 1000

// feed is a configuration as a factory reads it. It notes who reads for ever, and ends
// him.
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
		runtime.Goexit() // nobody waits for the factory any more
	default:
	}
	if f.failed > readsToHang {
		f.end()
		runtime.Goexit()
	}
	return n, err
}

// failing is a reader that fails.
type failing struct{}

func (failing) Read([]byte) (int, error) {
	return 0, errors.New("the configuration cannot be read (so this test wants it)")
}

// built is what a factory made of a configuration.
type built struct {
	plugin admission.Interface
	err    error
	hung   bool
}

// build has the factory build from a configuration, and does not wait for ever. Nil is
// no configuration.
func buildFrom(t *check.T, config io.Reader) built {
	var given io.Reader
	watched := newFeed(config)
	switch config.(type) {
	case nil, *os.File:
		given = config // as it is: that it is nil is the point
	default:
		given = watched
	}
	done := make(chan built, 1)
	go func() {
		var one built
		defer func() { done <- one }()
		one.plugin, one.err = t.Subject.Source.Plugin(given)
	}()
	limit := time.NewTimer(patience)
	defer limit.Stop()
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
	case <-limit.C:
		watched.end()
		return built{hung: true}
	}
}

// configCase is a configuration and what is to come of it.
type configCase struct {
	name   string
	config func() io.Reader
	expect expectation
}

type expectation int

const (
	anything expectation = iota // but a panic or a hang
	refused
	accepted
)

func text(s string) func() io.Reader { return func() io.Reader { return strings.NewReader(s) } }

// valid returns the configurations that the Subject says are accepted.
func validConfigurations(s check.Subject) []string {
	var all []string
	for _, config := range append([]string{s.Config}, s.Configs.Valid...) {
		if config != "" && !slices.Contains(all, config) {
			all = append(all, config)
		}
	}
	return all
}

// configCases returns what a factory is tried with.
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
		{"a configuration that is no YAML", text("{\"a\": [1, 2\n\t: }}} not a configuration\n"), unreadable},
		{"a binary configuration", text("\x00\x01\x02\xff\xfe\x7fELF\x00"), unreadable},
		{"the first half of a valid configuration", text(half), anything},
		{"a reader that fails", func() io.Reader { return failing{} }, unreadable},
		{"a reader that fails after the first half", func() io.Reader { return io.MultiReader(strings.NewReader(half), failing{}) }, unreadable},
		{"twenty thousand brackets", text(strings.Repeat("[", 20000)), anything},
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
			t.Errorf("given %s the factory did not return: expected an error", one.name)
			return // each may take as long
		case isPanic:
			t.Errorf("given %s %v", one.name, thrown)
		case one.expect == refused && got.err == nil:
			t.Errorf("given %s the factory returned a plugin: expected an error", one.name)
		case one.expect == accepted && got.err != nil:
			t.Errorf("given %s the factory refused it: %v", one.name, got.err)
		}
	}
}

// unknownField is in no configuration.
const unknownField = "admissiontestUnknownField"

// altered returns a configuration with a field that nobody knows, and with one twice.
// It is false for a configuration that is no YAML or JSON object, or several.
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
	// The last one, since apiVersion and kind come first and are read by others.
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
			t.Logf("the configuration %q is not looked at: it is not one YAML object", config)
			continue
		}
		if got := buildFrom(t, strings.NewReader(plain)); got.hung || got.err != nil {
			t.Logf("the configuration %q is not looked at: in the form %q it is refused", config, plain)
			continue
		}
		t.Reached()
		for what, config := range map[string]string{"a field that is not known": unknown, "a field that is there twice": twice} {
			if got := buildFrom(t, strings.NewReader(config)); got.err == nil && !got.hung {
				t.Errorf("the factory accepted a configuration with %s: expected an error (yaml.UnmarshalStrict, serializer.EnableStrict)\n%s", what, config)
			}
		}
	}
}
