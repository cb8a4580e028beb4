package hook

import (
	"encoding/json"
	"fmt"
	"time"
)

// String returns the duration in Go's notation: "150ms".
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads a string such as "150ms". A number is an error, because it has
// no unit.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf(`read duration: got %s, want a string with a unit, such as "150ms"`, data)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf(`read duration: got %q, want a number and a unit, such as "150ms" or "2s"`, text)
	}
	*d = Duration(parsed)
	return nil
}
