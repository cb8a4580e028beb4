package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes the Report as one indented JSON document.
func WriteJSON(w io.Writer, r Report) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r.ordered()); err != nil {
		return fmt.Errorf("write report as JSON: %w", err)
	}
	return nil
}
