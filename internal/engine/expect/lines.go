package expect

import (
	"fmt"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// Limits of textDiff.
const (
	// aroundLines is the number of equal lines that are shown around a difference.
	aroundLines = 3
	// mostLines is the number of lines of a result.
	mostLines = 400
	// mostCompared is the number of lines of both texts that are compared. Of more, each text is shown as a whole.
	mostCompared = 4000
)

// textDiff compares two texts line by line. The difference is not always the smallest one. It returns the lines of
// both texts: each begins with "-" if only the first text has it, with "+" if only the second one has it, with " " if
// both have it, or with "~" for equal lines that are left out and at the end of a long result. It is nil for equal
// texts.
func textDiff(first, second string) []string {
	if first == second {
		return nil
	}
	a, b := strings.Split(strings.TrimSuffix(first, "\n"), "\n"), strings.Split(strings.TrimSuffix(second, "\n"), "\n")
	groups := [][]difflib.OpCode{{{Tag: 'r', I2: len(a), J2: len(b)}}}
	if len(a)+len(b) <= mostCompared {
		groups = difflib.NewMatcher(a, b).GetGroupedOpCodes(aroundLines)
	}
	var out []string
	add := func(mark string, lines []string) {
		for _, line := range lines {
			out = append(out, mark+line)
		}
	}
	leaveOut := func(lines []string) {
		if len(lines) == 1 {
			add(" ", lines)
		} else if len(lines) > 0 {
			out = append(out, fmt.Sprintf("~ %d equal lines", len(lines)))
		}
	}
	shown := 0
	for _, group := range groups {
		leaveOut(a[shown:group[0].I1])
		for _, op := range group {
			if op.Tag == 'e' {
				add(" ", a[op.I1:op.I2])
			} else {
				add("-", a[op.I1:op.I2])
				add("+", b[op.J1:op.J2])
			}
			shown = op.I2
		}
	}
	leaveOut(a[shown:])
	if len(out) > mostLines {
		out = append(out[:mostLines], fmt.Sprintf("~ and %d more lines", len(out)-mostLines))
	}
	return out
}
