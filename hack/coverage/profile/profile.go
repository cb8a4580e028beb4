// Package profile reads coverage profiles of Go, which say which parts of a program ran.
package profile

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Block is a part of a file whose statements run together.
type Block struct {
	// File is the import path of the package, and the name of the file.
	File string
	// Start is the first position of the block. End is the position after the last one.
	Start, End Position
	Statements int
}

// Position is a place in a file. Lines and columns begin at 1; columns are bytes.
type Position struct{ Line, Column int }

// Before reports whether p is in front of q.
func (p Position) Before(q Position) bool {
	return p.Line < q.Line || p.Line == q.Line && p.Column < q.Column
}

// Profile says for each Block whether it ran. A Block has one entry, even if several servers ran
// it.
type Profile map[Block]bool

// moduleVersion matches the version of a module in the name of a file. The linker adds it with
// -trimpath.
var moduleVersion = regexp.MustCompile(`@[^/]+`)

// Parse parses what `go tool covdata textfmt` and `go test -coverprofile` write. Several
// profiles may follow each other.
func Parse(r io.Reader) (Profile, error) {
	p := Profile{}
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
func parseBlock(text string) (b Block, ran bool, err error) {
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
