package fakes

import (
	"math/rand/v2"
	"slices"
)

// Order is the order of injections: it gets the names in the order of the API server
// and returns the same names in another.
type Order func(names []string) []string

// Upstream is the order of the API server's own initializers. A nil Order means it too.
func Upstream() Order { return slices.Clone[[]string] }

// Reverse is the opposite of Upstream.
func Reverse() Order {
	return func(names []string) []string {
		reversed := slices.Clone(names)
		slices.Reverse(reversed)
		return reversed
	}
}

// Shuffled is an order by a seed: the same one for the same seed and names.
func Shuffled(seed uint64) Order {
	return func(names []string) []string {
		shuffled := slices.Clone(names)
		source := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // an order that can be had again
		source.Shuffle(len(shuffled), func(a, b int) { shuffled[a], shuffled[b] = shuffled[b], shuffled[a] })
		return shuffled
	}
}
