package contract

// errorProperties returns the properties of this file.
func errorProperties() []Property { return nil }
