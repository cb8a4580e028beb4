package engine

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// ErrUnknownName marks a selection by a name that no scenario or area has, or by
// a pattern that is malformed.
var ErrUnknownName = errors.New("unknown name")

// ErrNothingSelected marks a selection that left no scenario.
var ErrNothingSelected = errors.New("nothing selected")

// Filter narrows a selection. The zero value keeps everything.
type Filter struct {
	// Levels are those to keep. Empty keeps all.
	Levels []framework.Level
}

// Select returns the scenarios and cases that any of the arguments names and the filter
// keeps, in the order in which they are in all. No argument selects all.
//
// An argument is the name of a scenario or of a case, the name of an area, or a pattern as in
// package path ("reinvocation.*"; a star stands for dots too). The error is an
// ErrUnknownName, with a suggestion, for a name that there is not, and an
// ErrNothingSelected for a pattern without a match or when the filter keeps
// nothing.
func Select(all []scenario.Scenario, args []string, filter Filter) ([]scenario.Scenario, error) {
	wanted := map[string]bool{}
	var errs []error
	for _, arg := range args {
		names, err := Match(all, arg)
		if err != nil {
			errs = append(errs, err)
		}
		for _, name := range names {
			wanted[name] = true
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	selected := scenario.Keep(all, func(s scenario.Scenario) bool {
		return (len(args) == 0 || wanted[s.Metadata.Name]) && (len(filter.Levels) == 0 || slices.Contains(filter.Levels, s.Spec.Level))
	})
	if len(selected) == 0 {
		return nil, fmt.Errorf("select scenarios: %w: %s", ErrNothingSelected, whyNothing(len(scenario.Cases(all)), args, filter))
	}
	return selected, nil
}

// whyNothing says what a selection without a result asked for.
func whyNothing(total int, args []string, filter Filter) string {
	what := fmt.Sprintf("none of %d scenarios", total)
	if len(args) > 0 {
		what += " called " + strings.Join(args, ", ")
	}
	if len(filter.Levels) > 0 {
		what += fmt.Sprintf(" has a level of %v", filter.Levels)
	}
	return what
}

// Match returns the names of the scenarios that one argument of Select names.
// It returns the errors of Select.
func Match(all []scenario.Scenario, arg string) ([]string, error) {
	isPattern := strings.ContainsAny(arg, `*?[\`)
	if _, err := path.Match(arg, ""); err != nil {
		return nil, fmt.Errorf("select %q: %w: the pattern is malformed; want * for any text, ? for a character, [a-z] for one of several", arg, ErrUnknownName)
	}
	var names []string
	cases := scenario.Cases(all)
	for _, s := range cases {
		if s.Metadata.Name == arg && arg != "" { // and not the area of that name, if there is one
			return []string{arg}, nil
		}
		hit := s.Area == arg
		if isPattern {
			hit, _ = path.Match(arg, s.Metadata.Name)
		}
		if hit && arg != "" {
			names = append(names, s.Metadata.Name)
		}
	}
	switch {
	case len(names) > 0:
		return names, nil
	case isPattern:
		return nil, fmt.Errorf("select %q: %w: the pattern matches none of %d scenarios", arg, ErrNothingSelected, len(cases))
	default:
		return nil, fmt.Errorf("select %q: %w: no scenario and no area is called so%s", arg, ErrUnknownName, suggest.DidYouMean(arg, Names(all)))
	}
}

// Names returns every name that Select understands: areas first, then scenarios.
func Names(all []scenario.Scenario) []string {
	var areas, names []string
	for _, s := range scenario.Cases(all) {
		names = append(names, s.Metadata.Name)
		if s.Area != "" {
			areas = append(areas, s.Area)
		}
	}
	slices.Sort(areas)
	return append(slices.Compact(areas), names...)
}

// ErrBadEndpoint marks an Endpoint that an API server cannot use, or that no scenario
// uses.
var ErrBadEndpoint = errors.New("the endpoint cannot be used")

// CheckEndpoints returns an ErrBadEndpoint for each Endpoint that an API server cannot
// use, and for each whose address has no webhook in any scenario. The keys of endpoints are
// NAMESPACE/NAME of Services and HOST:PORT of URLs. The manifests are installed for all scenarios.
func CheckEndpoints(scenarios []scenario.Scenario, endpoints map[string]framework.Endpoint, manifests ...map[string]any) error {
	var errs []error
	services, hosts := expect.WebhookAddresses(scenarios, manifests...)
	for _, name := range slices.Sorted(maps.Keys(endpoints)) {
		what, known := "Service", services
		if !strings.Contains(name, "/") {
			what, known = "host", hosts
		}
		if err := endpoints[name].Validate(); err != nil {
			errs = append(errs, fmt.Errorf("use endpoint of %s %s: %w: %w", what, name, ErrBadEndpoint, err))
		}
		if slices.Contains(known, name) {
			continue
		}
		hint := suggest.DidYouMean(name, known)
		if hint == "" {
			hint = fmt.Sprintf("; available: %q", known)
		}
		errs = append(errs, fmt.Errorf("use endpoint of %s %s: %w: no selected scenario has a webhook of that %s%s", what, name, ErrBadEndpoint, what, hint))
	}
	return errors.Join(errs...)
}
