package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// UnmarshalJSON reads a list of calls as InOrder, and a mapping as it is. Unknown
// fields are errors.
func (c *Calls) UnmarshalJSON(data []byte) error {
	if first(data) == '[' {
		*c = Calls{}
		return strict(data, &c.InOrder, "calls")
	}
	type plain Calls
	return strict(data, (*plain)(c), "calls")
}

// UnmarshalJSON reads a text as Webhook, and a mapping as it is. Unknown fields
// are errors.
func (c *Call) UnmarshalJSON(data []byte) error {
	if first(data) == '"' {
		*c = Call{}
		return strict(data, &c.Webhook, "call")
	}
	type plain Call
	return strict(data, (*plain)(c), "call")
}

// UnmarshalJSON reads one value, or a list of them.
func (o *OneOrMore[T]) UnmarshalJSON(data []byte) error {
	if first(data) == '[' || first(data) == 'n' {
		return strict(data, (*[]T)(o), "list")
	}
	var one T
	if err := strict(data, &one, "value"); err != nil {
		return err
	}
	*o = OneOrMore[T]{one}
	return nil
}

// first returns the first byte of a JSON value, or 0.
func first(data []byte) byte {
	if data = bytes.TrimLeft(data, " \t\r\n"); len(data) > 0 {
		return data[0]
	}
	return 0
}

func strict(data []byte, into any, what string) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	return nil
}
