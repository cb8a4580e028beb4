package contract

// TryData is the body of Fuzz.
func TryData(subject Subject, data []byte, fill ...any) Outcome { return fuzz(subject, data, fill) }
