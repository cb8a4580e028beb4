// Package lib has functions of which a known number of statements run.
package lib

import "errors"

// Choose has five statements: the condition, two in each branch. One run covers three of them.
func Choose(left bool) int {
	if left {
		n := 1
		return n
	} else {
		n := 2
		return n
	}
}

type box[T any] struct{ value T }

func (b *box[T]) get() (T, error) {
	if b == nil {
		var none T
		return none, errors.New("no box")
	}
	return b.value, nil
}

var double = func(n int) int { return 2 * n }

// Get runs.
func Get() (int, error) { return (&box[int]{value: double(1)}).get() }

func neverForTest() int { return 0 }
