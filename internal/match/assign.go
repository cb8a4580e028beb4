package match

import "slices"

// Assign assigns different actual values to as many expected ones as possible, by
// index. It returns the index of the actual value for each expected one, or -1. If
// several assignments have the same size, the result depends only on the order. It
// calls fits once for each pair.
func Assign(expected, actual int, fits func(expected, actual int) bool) []int {
	assignment := assignment{
		fits:   make([][]bool, expected),
		holder: slices.Repeat([]int{-1}, actual),
	}
	for e := range expected {
		assignment.fits[e] = make([]bool, actual)
		for a := range actual {
			assignment.fits[e][a] = fits(e, a)
		}
	}
	for e := range expected {
		assignment.assign(e, make([]bool, actual))
	}
	result := slices.Repeat([]int{-1}, expected)
	for a, e := range assignment.holder {
		if e >= 0 {
			result[e] = a
		}
	}
	return result
}

type assignment struct {
	fits   [][]bool
	holder []int // by actual index: the index of the expected one, or -1
}

// assign finds an actual value for e, and moves others if necessary.
func (s *assignment) assign(e int, tried []bool) bool {
	for a := range s.holder {
		if !s.fits[e][a] || tried[a] {
			continue
		}
		tried[a] = true
		if s.holder[a] < 0 || s.assign(s.holder[a], tried) {
			s.holder[a] = e
			return true
		}
	}
	return false
}
