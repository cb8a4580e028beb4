// Package html writes a report as one HTML page for people.
//
// [Write] writes the page of a run, [WriteDiff] the page of two runs that are compared, [WriteMatrix] the page of several API servers, and [Save]
// the file report.html of a report folder.
//
// # Promise
//
// A page is one file that needs nothing else: no network, no other file. It can be read without
// JavaScript; with it, outcomes can be filtered and the fragment of the URL keeps the filter.
//
// Text of servers and scenarios is data. The page has a Content-Security-Policy that allows only its
// own script and style, by their hashes, and no requests.
//
// # Not promised
//
// The layout of the page can change; read report.json instead.
package html

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the templates, style and script
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"path/filepath"
	"strings"

	"github.com/admissiontest/admissiontest/internal/console"
	"github.com/admissiontest/admissiontest/internal/report"
)

// File is the file that Save writes.
const File = "report.html"

var (
	//go:embed page.tmpl
	pageTemplate string
	//go:embed report.tmpl
	reportTemplate string
	//go:embed diff.tmpl
	diffTemplate string
	//go:embed matrix.tmpl
	matrixTemplate string
	//go:embed page.css
	style string
	//go:embed page.js
	script string
)

// page is what page.tmpl is executed with.
type page struct {
	Title  string
	Policy string
	Style  template.CSS
	Script template.JS
	// Content is what the other template is executed with.
	Content any
}

// Save writes report.html into the folder of a report. The folder must exist.
func Save(dir string, r report.Report) error {
	return report.ReplaceFile(filepath.Join(dir, File), func(w io.Writer) error { return Write(w, r) })
}

// Write writes the page of a run.
func Write(w io.Writer, r report.Report) error {
	run := newRun(r)
	return write(w, "admissiontest: "+run.Word+", "+run.Target, reportTemplate, run)
}

// WriteDiff writes the page of two runs that are compared.
func WriteDiff(w io.Writer, diff report.Diff) error {
	return write(w, "admissiontest: two runs compared", diffTemplate, newComparison(diff))
}

// WriteMatrix writes a page that compares API servers.
func WriteMatrix(w io.Writer, servers report.Matrix) error {
	return write(w, "admissiontest: API servers compared", matrixTemplate, servers)
}

func write(w io.Writer, title, content string, data any) error {
	t, err := template.New("page").Funcs(functions()).Parse(pageTemplate)
	if err == nil {
		_, err = t.New("content").Parse(content)
	}
	var text bytes.Buffer
	if err == nil {
		err = t.Execute(&text, page{
			Title:   title,
			Policy:  "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; style-src " + hash(style) + "; script-src " + hash(script),
			Style:   template.CSS(style), //nolint:gosec // a file of this package
			Script:  template.JS(script), //nolint:gosec // a file of this package
			Content: data,
		})
	}
	if err == nil {
		// Characters that change the direction of text could make a page seem to say something
		// else.
		_, err = io.WriteString(w, console.Printable(text.String()))
	}
	if err != nil {
		return fmt.Errorf("write report as HTML: %w", err)
	}
	return nil
}

// hash returns the source expression of a Content-Security-Policy that allows a script or style.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func functions() template.FuncMap {
	return template.FuncMap{
		"millis":  millis,
		"seconds": func(value float64) string { return fmt.Sprintf("%.3f s", value) },
		"deref":   func(value *float64) float64 { return *value },
		"join":    strings.Join,
		"isLink":  isLink,
	}
}

// isLink reports whether a source is a link: other URLs, and text, are not.
func isLink(text string) bool {
	return strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")
}

// millis returns a number of milliseconds. A call of a webhook on the same machine can take less than
// one.
func millis(value float64) string {
	if value < 1 {
		return fmt.Sprintf("%.2f ms", value)
	}
	return fmt.Sprintf("%.1f ms", value)
}
