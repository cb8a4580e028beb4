package object

// Unserved is a part of a rule of a webhook or policy that names nothing an API server serves.
type Unserved struct {
	// Field and Index are its place in the rule: "resources", 1.
	Field string
	Index int
	// Problem says what the API server does not serve, and what was expected.
	Problem string
	// Hint is what is probably meant, or "".
	Hint string
}
