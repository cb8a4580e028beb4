package report

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
)

// Group has outcomes with one verdict and one cause, in the order in which they were given.
type Group struct {
	// Cause is why their verdict is not a pass. It is empty for an outcome whose cause may be its own; the
	// group then has no other outcome.
	Cause    string
	Outcomes []Outcome
}

// Groups groups outcomes by verdict and cause; known failures are apart. The groups are in the order of their first outcomes.
func Groups(outcomes []Outcome) []Group {
	var all []Group
	at := map[string]int{}
	for _, outcome := range outcomes {
		key, text := outcome.SameCause()
		if key == "" {
			all = append(all, Group{Outcomes: []Outcome{outcome}})
			continue
		}
		key = fmt.Sprint(outcome.Verdict, outcome.KnownFailing != "", key)
		i, seen := at[key]
		if !seen {
			i = len(all)
			at[key], all = i, append(all, Group{Cause: text})
		}
		all[i].Outcomes = append(all[i].Outcomes, outcome)
	}
	return all
}

var (
	// inStep is the beginning of a Reason.
	inStep = regexp.MustCompile(`^(setup: |step \d+( \(line \d+\))?: )+`)
	// ofObject is the object of a response, which other scenarios name differently.
	ofObject = regexp.MustCompile(`\S+ "[^"]*" is (forbidden|invalid): `)
)

// SameCause returns why the verdict is not a pass. The key is the same for every outcome with that cause, and
// empty if no other outcome can have it, or if the cause is not known.
func (o Outcome) SameCause() (key, text string) {
	switch {
	case o.Verdict == framework.Pass, o.NotReached:
		return "", ""
	case o.Verdict == framework.Fail:
		return o.refused()
	case o.Cause != "":
		return o.Cause, o.Cause
	case o.NotServed != "":
		text = "the API server does not serve " + o.NotServed
		return text, text
	}
	text = inStep.ReplaceAllString(FirstLine(o.Reason), "")
	if o.Evidence != nil {
		text = strings.TrimPrefix(text, o.Evidence.Action+": ")
	}
	return text, text
}

// refused returns SameCause of a failure whose request got an unexpected refusal or error.
func (o Outcome) refused() (key, text string) {
	if o.Evidence == nil || len(o.Evidence.Mismatches) == 0 {
		return "", ""
	}
	switch path, _, _ := strings.Cut(o.Evidence.Mismatches[0].Path, "."); path {
	case "allowed", "code", "reason", "message", "refusedBy":
	default:
		return "", "" // the response is not the cause
	}
	first, _, _ := strings.Cut(o.Evidence.Response, " ")
	if code, err := strconv.Atoi(first); err != nil || code < 400 {
		return "", ""
	}
	return ofObject.ReplaceAllString(o.Evidence.Response, ""), "response " + FirstLine(o.Evidence.Response)
}

// others names the outcomes of a group after the first: a few of them.
func (g Group) others() string {
	others := g.Outcomes[1:]
	text := fmt.Sprintf("%d more with this cause", len(others))
	if g.Outcomes[0].Cause != "" { // otherwise the failure of the first shows it
		text += ": " + g.Cause
	}
	for i, outcome := range others {
		if i == shortList {
			return fmt.Sprintf("%s\nand %d others (-v shows all)", text, len(others)-i)
		}
		text += "\n" + outcome.Name
		if line := outcome.line(); line > 0 {
			text += fmt.Sprintf(" (%s:%d)", outcome.File, line)
		}
	}
	return text
}
