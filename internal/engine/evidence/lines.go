package evidence

import (
	"fmt"
	"strings"
)

// Limits of textDiff.
const (
	// aroundLines is the number of equal lines that are shown around a difference.
	aroundLines = 3
	// mostLines is the number of lines of a result.
	mostLines = 400
	// mostCells bounds the table of the comparison. Texts with more differences are shown one after
	// the other.
	mostCells = 4 << 20
)

// textDiff compares two texts line by line, in time and memory that are bounded for texts of any size. The difference
// is not always the smallest one. It returns the lines of both texts: each begins with "-" if only the first text has it, with
// "+" if only the second one has it, with " " if both have it, or with "~" for equal lines
// that are left out and at the end of a long result. It is nil for equal texts.
func textDiff(first, second string) []string {
	if first == second {
		return nil
	}
	return shortened(edits(strings.Split(strings.TrimSuffix(first, "\n"), "\n"), strings.Split(strings.TrimSuffix(second, "\n"), "\n")))
}

// edits returns all lines of both texts with their marks.
func edits(a, b []string) []string {
	var out []string
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		out = append(out, " "+a[head])
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	end := a[len(a)-tail:]
	out = append(out, middle(a[head:len(a)-tail], b[head:len(b)-tail])...)
	for _, line := range end {
		out = append(out, " "+line)
	}
	return out
}

// middle compares texts by their longest common subsequence.
func middle(a, b []string) []string {
	var out []string
	if (len(a)+1)*(len(b)+1) > mostCells {
		for _, line := range a {
			out = append(out, "-"+line)
		}
		for _, line := range b {
			out = append(out, "+"+line)
		}
		return out
	}
	// common[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
	common := make([][]int32, len(a)+1)
	for i := range common {
		common[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, " "+a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			out = append(out, "-"+a[i])
			i++
		default:
			out = append(out, "+"+b[j])
			j++
		}
	}
	return out
}

// shortened leaves out equal lines that are far from a difference, and what is beyond the limit.
func shortened(lines []string) []string {
	near := make([]bool, len(lines))
	for i, line := range lines {
		if line[0] == ' ' {
			continue
		}
		for k := max(0, i-aroundLines); k <= min(len(lines)-1, i+aroundLines); k++ {
			near[k] = true
		}
	}
	var out []string
	for i := 0; i < len(lines); {
		if len(out) >= mostLines {
			return append(out, fmt.Sprintf("~ and %d more lines", len(lines)-i))
		}
		if near[i] {
			out = append(out, lines[i])
			i++
			continue
		}
		from := i
		for i < len(lines) && !near[i] {
			i++
		}
		if i-from == 1 {
			out = append(out, lines[from])
		} else {
			out = append(out, fmt.Sprintf("~ %d equal lines", i-from))
		}
	}
	return out
}
