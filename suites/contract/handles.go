package contract

// handlesProperties returns the properties of this file.
func handlesProperties() []Property { return nil }
