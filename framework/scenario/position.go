package scenario

// Origin says where the manifests of a scenario are in its files. Its methods are safe for
// concurrent use. Package load implements it.
type Origin interface {
	// Position returns the position of a manifest or of one of its fields, as ErrorAt describes them.
	// File is empty for the file of the scenario itself.
	Position(manifest, field string) (file string, line, column int)
	// Locate returns the position of a character in the text of a field, for its line and column in the
	// text. If the text does not have it, the position is that of the field.
	Locate(manifest, field string, line, column int) (file string, fileLine, fileColumn int)
	// FromFile reports whether a manifest is in another file than the scenario.
	FromFile(manifest string) bool
}

// ErrorAt returns an Error with the position of a manifest in the scenario, or of one of its
// fields. Manifest is a path in the spec, "given[1]" or "when[0].create"; an index of given is one of
// Spec.Given. Field is a path in the manifest as an API server writes it,
// "webhooks[0].rules[1].scope"; it can be empty. If the field does not exist, the position is that
// of the last part of the path that does. For a scenario without an Origin, the error has
// the File of the scenario, and no position.
func (s Scenario) ErrorAt(manifest, field, message, hint string) *Error {
	problem := &Error{File: s.File, Message: message, Hint: hint}
	if s.Origin == nil {
		return problem
	}
	file, line, column := s.Origin.Position(manifest, field)
	if file != "" {
		problem.File = file
	}
	problem.Line, problem.Column = line, column
	return problem
}

// ErrorIn is ErrorAt for a character in the text of a field, such as an expression: at its line and column
// in the text, from 1.
func (s Scenario) ErrorIn(manifest, field string, at [2]int, message string) *Error {
	problem := &Error{File: s.File, Message: message}
	if s.Origin == nil {
		return problem
	}
	var file string
	if file, problem.Line, problem.Column = s.Origin.Locate(manifest, field, at[0], at[1]); file != "" {
		problem.File = file
	}
	return problem
}

// FromFile reports whether a manifest is in another file than the scenario. Its place is as in ErrorAt.
func (s Scenario) FromFile(manifest string) bool {
	return s.Origin != nil && s.Origin.FromFile(manifest)
}
