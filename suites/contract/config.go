package contract

// configProperties returns the properties of this file.
func configProperties() []Property { return nil }
