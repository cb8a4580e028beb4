package scenario

// kind is what a node is. Its text is how messages call it.
type kind string

const (
	kindNull    kind = "nothing"
	kindBool    kind = "true or false"
	kindInteger kind = "an integer"
	kindNumber  kind = "a number"
	kindText    kind = "a text"
	kindList    kind = "a list"
	kindMapping kind = "a mapping"
	// kindRefused is what already has its error, and gets no other.
	kindRefused kind = "refused"
)

// node is a value of a file with its place.
type node struct {
	kind         kind
	line, column int
	// value of a bool, int64, float64 or string.
	value any
	// raw is a scalar as it is written, without quotes.
	raw    string
	items  []*node
	fields []field
}

// field is a field of a mapping, with the place of its name.
type field struct {
	name         string
	line, column int
	value        *node
}

// get returns the value of a field, or nil if there is none, or no mapping.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for i := range n.fields {
		if n.fields[i].name == name {
			return n.fields[i].value
		}
	}
	return nil
}

// has reports whether a mapping has a field.
func (n *node) has(name string) bool { return n.get(name) != nil }

// text returns the text of a field, or "".
func (n *node) text(name string) string {
	if text, ok := n.get(name).plainValue().(string); ok {
		return text
	}
	return ""
}

// list returns the items of a field that is a list.
func (n *node) list(name string) []*node {
	if value := n.get(name); value != nil {
		return value.items
	}
	return nil
}

// find follows a path of names and indexes as far as it leads.
func (n *node) find(path []any) *node {
	for _, step := range path {
		var next *node
		switch step := step.(type) {
		case string:
			next = n.get(step)
		case int:
			if step >= 0 && step < len(n.items) {
				next = n.items[step]
			}
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// plainValue returns a node as Go values: nil, bool, int64, float64, string,
// []any and map[string]any.
func (n *node) plainValue() any {
	if n == nil {
		return nil
	}
	switch n.kind {
	case kindMapping:
		return n.mapping()
	case kindList:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			list[i] = item.plainValue()
		}
		return list
	default:
		return n.value
	}
}

func (n *node) mapping() map[string]any {
	mapping := make(map[string]any, len(n.fields))
	for i := range n.fields {
		mapping[n.fields[i].name] = n.fields[i].value.plainValue()
	}
	return mapping
}

// describe says what a node is, for messages.
func (n *node) describe() string {
	switch n.kind {
	case kindText:
		return "the text " + shown(n.raw)
	case kindBool, kindInteger, kindNumber:
		return n.raw
	default:
		return string(n.kind)
	}
}
