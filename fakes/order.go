package fakes

import (
	"math/rand/v2"
	"slices"
)

// Order decides the order of injections. It gets their names in the order of an API server, and
// returns the same names in another order.
type Order func(names []string) []string

// DefaultOrder returns the order of an API server's initializers. It is the default: a nil Order is the
// same.
func DefaultOrder() Order { return slices.Clone[[]string] }

// Reverse returns the reverse of DefaultOrder.
func Reverse() Order {
	return func(names []string) []string {
		reversed := slices.Clone(names)
		slices.Reverse(reversed)
		return reversed
	}
}

// Shuffled returns a random order. The same seed gives the same order for the same names.
func Shuffled(seed uint64) Order {
	return func(names []string) []string {
		shuffled := slices.Clone(names)
		source := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // a test can repeat the order
		source.Shuffle(len(shuffled), func(a, b int) { shuffled[a], shuffled[b] = shuffled[b], shuffled[a] })
		return shuffled
	}
}
