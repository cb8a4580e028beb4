package rule

import (
	"fmt"
	"slices"
	"strings"
)

const (
	maxShapes = 12 // ways in which requests break a rule, in one Outcome
	maxNotes  = 3  // logs of a check, in one Outcome
)

// shape is one way in which requests break a rule.
type shape struct {
	// line is the first line of the first failure, and detail the others.
	line, detail string
	// also has the other requests that break the rule in the same way, each of them once.
	also []string
	// times is the number of failures.
	times int
}

// fold returns one line for each way in which requests break a rule, and the details of the first
// failure. Failures that differ only in the request share a line.
func fold(failures, requests []string) string {
	var order []*shape
	known := map[string]*shape{}
	for _, failure := range failures {
		line, detail, _ := strings.Cut(failure, "\n")
		key, request := withoutRequest(line, requests)
		same, ok := known[key]
		if !ok {
			same = &shape{line: line, detail: detail}
			known[key], order = same, append(order, same)
		} else if request != "" && !strings.HasPrefix(same.line, request) && !slices.Contains(same.also, request) {
			same.also = append(same.also, request)
		}
		same.times++
	}
	var lines []string
	for i, each := range order {
		if i == maxShapes {
			lines = append(lines, fmt.Sprintf("and %d more", len(order)-maxShapes))
			break
		}
		lines = append(lines, each.text())
	}
	if detail := strings.TrimSpace(order[0].detail); detail != "" {
		if len(order) > 1 {
			lines = append(lines, "details of the first line:")
		}
		lines = append(lines, detail)
	}
	return strings.Join(lines, "\n")
}

// text returns the line with the other requests: "create Pod a/b: refused (also update Pod a/b)".
func (s *shape) text() string {
	switch {
	case len(s.also) == 1:
		return fmt.Sprintf("%s (also %s)", s.line, s.also[0])
	case len(s.also) > 1:
		return fmt.Sprintf("%s (also %s and %d more)", s.line, s.also[0], len(s.also)-1)
	case s.times > 1:
		return fmt.Sprintf("%s (%d times)", s.line, s.times)
	default:
		return s.line
	}
}

// withoutRequest returns a line without its request, and the request. Requests has the names of
// all requests, the longer ones first.
func withoutRequest(line string, requests []string) (rest, request string) {
	for _, each := range requests {
		if rest, ok := strings.CutPrefix(line, each); ok {
			return strings.ReplaceAll(rest, each, ""), each
		}
	}
	return line, ""
}

// notes returns the first line of the first logs of a check.
func notes(logs []string) []string {
	var lines []string
	for i, each := range logs {
		if i == maxNotes {
			return append(lines, fmt.Sprintf("and %d more notes", len(logs)-maxNotes))
		}
		line, _, _ := strings.Cut(each, "\n")
		lines = append(lines, line)
	}
	return lines
}
