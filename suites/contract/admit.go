package contract

// admitProperties returns the properties of this file.
func admitProperties() []Property { return nil }
