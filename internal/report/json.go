package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/admissiontest/admissiontest/internal/redact"
)

// WriteJSON writes the Report as one indented JSON document without characters that package redact
// replaces: they are escaped.
func WriteJSON(w io.Writer, r Report) error { return writeDocument(w, r.Ordered(), "report") }

// writeDocument writes one JSON document. What is the name of the document in an error.
func writeDocument(w io.Writer, value any, what string) error {
	var document bytes.Buffer
	encoder := json.NewEncoder(&document)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	if err == nil {
		_, err = w.Write(redact.EscapedJSON(document.Bytes()))
	}
	if err != nil {
		return fmt.Errorf("write %s as JSON: %w", what, err)
	}
	return nil
}
