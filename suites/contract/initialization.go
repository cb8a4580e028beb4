package contract

// initializationProperties returns the properties of this file.
func initializationProperties() []Property { return nil }
