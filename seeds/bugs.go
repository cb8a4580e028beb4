package seeds

import "os"

// seeded is the name of the one bug that is switched on.
var seeded = os.Getenv("SEED")

func bug(name string) bool { return seeded == name }
