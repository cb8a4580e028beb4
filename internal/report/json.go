package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes the Report as one indented JSON document. A line of it is never a
// command of GitHub Actions: see package console.
func WriteJSON(w io.Writer, r Report) error { return writeDocument(w, r.ordered(), "report") }

// writeDocument writes one JSON document. What names it in the error.
func writeDocument(w io.Writer, value any, what string) error {
	var document bytes.Buffer
	encoder := json.NewEncoder(&document)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	if err == nil {
		// Only strings have these characters. The escape does not change their value.
		_, err = w.Write(bytes.ReplaceAll(document.Bytes(), []byte("##["), []byte(`#\u0023[`)))
	}
	if err != nil {
		return fmt.Errorf("write %s as JSON: %w", what, err)
	}
	return nil
}
