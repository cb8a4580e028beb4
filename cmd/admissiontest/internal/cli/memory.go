package cli

import "runtime/debug"

// MemoryLimit is the soft limit of memory of the process, in bytes: enough for the catalogue.
const MemoryLimit = 200 << 20

// Scenarios above ofCatalogue raise the limit by perScenario bytes each.
const (
	ofCatalogue = 700
	perScenario = 200 << 10
)

// makeRoom raises the limit if many scenarios are loaded: they stay in memory, although only a part of them may be
// selected. With too little memory, Go spends most of the time on the collection of garbage. A limit that is not
// MemoryLimit is one that the user chose, and stays as it is.
func makeRoom(scenarios int) {
	if more := scenarios - ofCatalogue; more > 0 && debug.SetMemoryLimit(-1) == MemoryLimit {
		debug.SetMemoryLimit(MemoryLimit + int64(more)*perScenario)
	}
}
