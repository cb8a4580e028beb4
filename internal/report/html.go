package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the templates, style and script
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
)

var (
	//go:embed page.tmpl
	pageTemplate string
	//go:embed report.tmpl
	reportTemplate string
	//go:embed matrix.tmpl
	matrixTemplate string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string
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

// WriteHTML writes the report as one page for people. The page is one file that needs nothing else: no network, no other
// file. It can be read without JavaScript; with it, outcomes can be filtered and the fragment of the URL keeps the filter.
//
// Text of servers and scenarios is data. The page has a Content-Security-Policy that allows only its
// own script and style, by their hashes, and no requests. Its layout can change; read report.json instead.
func WriteHTML(w io.Writer, r Report) error {
	run := newRun(r)
	return writePage(w, "admissiontest: "+run.Word+", "+run.Target, reportTemplate, run)
}

// WriteHTML writes a page, as that of a report, that compares API servers.
func (m Matrix) WriteHTML(w io.Writer) error {
	return writePage(w, "admissiontest: API servers compared", matrixTemplate, m)
}

func writePage(w io.Writer, title, content string, data any) error {
	t, err := template.New("page").Funcs(pageFunctions()).Parse(pageTemplate)
	if err == nil {
		_, err = t.New("content").Parse(content)
	}
	var text bytes.Buffer
	if err == nil {
		err = t.Execute(&text, page{
			Title:   title,
			Policy:  "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; style-src " + sourceHash(pageStyle) + "; script-src " + sourceHash(pageScript),
			Style:   template.CSS(pageStyle), //nolint:gosec // a file of this package
			Script:  template.JS(pageScript), //nolint:gosec // a file of this package
			Content: data,
		})
	}
	if err == nil {
		// Characters that change the direction of text could make a page seem to say something
		// else.
		_, err = io.WriteString(w, printable(text.String()))
	}
	if err != nil {
		return fmt.Errorf("write report as HTML: %w", err)
	}
	return nil
}

// sourceHash returns the source expression of a Content-Security-Policy that allows a script or style.
func sourceHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func pageFunctions() template.FuncMap {
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
