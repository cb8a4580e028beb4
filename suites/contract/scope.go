package contract

// scopeProperties returns the properties of this file.
func scopeProperties() []Property { return nil }
