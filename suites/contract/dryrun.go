package contract

// dryRunProperties returns the properties of this file.
func dryRunProperties() []Property { return nil }
