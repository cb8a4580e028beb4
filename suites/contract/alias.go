package contract

// aliasProperties returns the properties of this file.
func aliasProperties() []Property { return nil }
