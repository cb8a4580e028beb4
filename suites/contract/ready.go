package contract

// readyProperties returns the properties of this file.
func readyProperties() []Property { return nil }
