// Package runid makes the IDs of runs and scenarios, and finds them in names.
//
// Every object that a run creates outside of its namespaces has the ID of the run or of
// a scenario in its name. So do its namespaces:
//
//	at-k3f9xq2m7d              Prefix(run), the placeholder $(run)
//	at-k3f9xq2m7d-00012        Scenario(run, 12), the placeholder $(id)
//	at-k3f9xq2m7d-00012-other  another namespace of that scenario
package runid

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"strings"
)

// Len is the length of an ID of New. With 32 possible characters these are 50 random
// bits, so that another client of the cluster cannot guess the names of a run that is
// going to start.
const Len = 10

// New returns a random ID for a run, of lower-case letters and digits.
func New() string { return strings.ToLower(rand.Text()[:Len]) }

// Prefix returns how the names of a run begin.
func Prefix(run string) string { return "at-" + run }

// MaxScenarios is the largest number of a scenario of one run and server.
const MaxScenarios = 99999

// Scenario returns the ID of a scenario of a run, which is the name of its namespace.
// All IDs up to MaxScenarios have the same length, so none is the prefix of another.
func Scenario(run string, number int) string { return fmt.Sprintf("%s-%05d", Prefix(run), number) }

// Installed returns the ID of what is installed for all scenarios of a run.
func Installed(run string) string { return Prefix(run) + installed }

const installed = "-installed"

// Written returns the name of a manifest that was installed with an ID as its prefix: that of a scenario, or
// Installed of its run. Another name is returned unchanged.
func Written(name, id string) string {
	if written, ok := strings.CutPrefix(name, id+"-"); ok && id != "" {
		return written
	}
	if at := strings.LastIndex(id, "-"); at > 0 {
		return strings.TrimPrefix(name, id[:at]+installed+"-")
	}
	return name
}

// Has reports whether a name contains an ID as a whole: not followed or preceded by
// another letter or digit. So at-x-00100 is not in at-x-001000. An empty ID is in no
// name.
func Has(name, id string) bool {
	if id == "" {
		return false
	}
	for from := 0; ; {
		at := strings.Index(name[from:], id)
		if at < 0 {
			return false
		}
		begin, end := from+at, from+at+len(id)
		if (begin == 0 || !alphanumeric(name[begin-1])) && (end == len(name) || !alphanumeric(name[end])) {
			return true
		}
		from = begin + 1
	}
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// scenario matches the IDs of Scenario in names.
var scenario = regexp.MustCompile(`(?:^|[^a-zA-Z0-9])(at-[a-z0-9]+-[0-9]{5})(?:$|[^a-zA-Z0-9])`)

// ScenarioIn returns the first ID of a scenario that a name has, in the sense of Has.
func ScenarioIn(name string) (id string, ok bool) {
	match := scenario.FindStringSubmatch(name)
	if match == nil {
		return "", false
	}
	return match[1], true
}

// manager matches the field managers of what runs install.
var manager = regexp.MustCompile(`^at-([a-z0-9]+)-`)

// OfManager returns the ID of the run that a field manager belongs to: the ID of a scenario, or another
// name that begins with Prefix.
func OfManager(name string) (run string, ok bool) {
	match := manager.FindStringSubmatch(name)
	if match == nil {
		return "", false
	}
	return match[1], true
}
