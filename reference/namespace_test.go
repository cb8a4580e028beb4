package reference

// namespaceEntries returns the plugins of this file and those beside it.
func namespaceEntries() map[string]func() entry { return map[string]func() entry{} }
