package contract

// lifecycleProperties returns the properties of this file.
func lifecycleProperties() []Property { return nil }
