package contract

// validateProperties returns the properties of this file.
func validateProperties() []Property { return nil }
