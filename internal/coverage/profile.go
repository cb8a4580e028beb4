package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// block is a part of a file whose statements run together. Lines and columns begin at 1.
type block struct {
	file       string // the import path of the package, and the name of the file
	start, end position
	statements int
}

type position struct{ line, column int }

// before reports whether p is in front of q.
func (p position) before(q position) bool {
	return p.line < q.line || p.line == q.line && p.column < q.column
}

// profile says of each block whether it ran. A block is there once, whatever the number of
// servers that ran it.
type profile map[block]bool

// moduleVersion is the version of a module in the name of a file: the linker adds it if paths are
// trimmed.
var moduleVersion = regexp.MustCompile(`@[^/]+`)

// parseProfile parses what `go tool covdata textfmt` and `go test -coverprofile` write. Several
// profiles may follow each other.
func parseProfile(r io.Reader) (profile, error) {
	p := profile{}
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "mode: ") {
			continue
		}
		b, ran, err := parseBlock(text)
		if err != nil {
			return nil, fmt.Errorf("read the profile, line %d: %w", number, err)
		}
		p[b] = p[b] || ran
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the profile: %w", err)
	}
	return p, nil
}

// parseBlock parses FILE:LINE.COLUMN,LINE.COLUMN STATEMENTS COUNT.
func parseBlock(text string) (b block, ran bool, err error) {
	colon := strings.LastIndexByte(text, ':')
	if colon <= 0 {
		return b, false, fmt.Errorf("got %q, want FILE:LINE.COLUMN,LINE.COLUMN STATEMENTS COUNT", text)
	}
	var count uint64
	n, err := fmt.Sscanf(text[colon+1:], "%d.%d,%d.%d %d %d",
		&b.start.line, &b.start.column, &b.end.line, &b.end.column, &b.statements, &count)
	if err != nil || n != 6 || b.statements < 0 {
		return b, false, fmt.Errorf("got %q, want FILE:LINE.COLUMN,LINE.COLUMN STATEMENTS COUNT", text)
	}
	b.file = moduleVersion.ReplaceAllString(text[:colon], "")
	return b, count > 0, nil
}
