package contract

// panicProperties returns the properties of this file.
func panicProperties() []Property { return nil }
