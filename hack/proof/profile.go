package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// block is a part of a file whose statements run together.
type block struct {
	// File is the import path of the package, and the name of the file.
	File string
	// Start is the first position of the block. End is the position after the last one.
	Start, End position
	Statements int
}

// position is a place in a file. Lines and columns begin at 1; columns are bytes.
type position struct{ Line, Column int }

// before reports whether p is in front of q.
func (p position) before(q position) bool {
	return p.Line < q.Line || p.Line == q.Line && p.Column < q.Column
}

// profile says for each block whether it ran. A block has one entry, even if several servers ran
// it.
type profile map[block]bool

// moduleVersion matches the version of a module in the name of a file. The linker adds it with
// -trimpath.
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
		&b.Start.Line, &b.Start.Column, &b.End.Line, &b.End.Column, &b.Statements, &count)
	if err != nil || n != 6 || b.Statements < 0 {
		return b, false, fmt.Errorf("got %q, want FILE:LINE.COLUMN,LINE.COLUMN STATEMENTS COUNT", text)
	}
	b.File = moduleVersion.ReplaceAllString(text[:colon], "")
	return b, count > 0, nil
}
