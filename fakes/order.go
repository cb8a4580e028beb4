package fakes

import (
	"math/rand/v2"
	"slices"
)

// Order sorts injections: it gets their names in the order of an API server, and returns the
// same names in its own order.
type Order func(names []string) []string

// Upstream returns the order of an API server's initializers. A nil Order is the same.
func Upstream() Order { return slices.Clone[[]string] }

// Reverse returns the reverse of Upstream.
func Reverse() Order {
	return func(names []string) []string {
		reversed := slices.Clone(names)
		slices.Reverse(reversed)
		return reversed
	}
}

// Shuffled returns an order that depends on a seed. The same seed and names have the same order.
func Shuffled(seed uint64) Order {
	return func(names []string) []string {
		shuffled := slices.Clone(names)
		source := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // a test can repeat the order
		source.Shuffle(len(shuffled), func(a, b int) { shuffled[a], shuffled[b] = shuffled[b], shuffled[a] })
		return shuffled
	}
}
