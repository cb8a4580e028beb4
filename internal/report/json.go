package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes the Report as one indented JSON document. No line of the document can be a
// command of GitHub Actions: see package console.
func WriteJSON(w io.Writer, r Report) error { return writeDocument(w, r.ordered(), "report") }

// writeDocument writes one JSON document. What is the name of the document in an error.
func writeDocument(w io.Writer, value any, what string) error {
	var document bytes.Buffer
	encoder := json.NewEncoder(&document)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	if err == nil {
		// These characters only occur in JSON strings, where the escape does not change the value.
		_, err = w.Write(bytes.ReplaceAll(document.Bytes(), []byte("##["), []byte(`#\u0023[`)))
	}
	if err != nil {
		return fmt.Errorf("write %s as JSON: %w", what, err)
	}
	return nil
}
