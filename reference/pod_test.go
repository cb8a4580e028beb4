package reference

// podEntries returns the plugins of this file and those beside it.
func podEntries() map[string]func() entry { return map[string]func() entry{} }
