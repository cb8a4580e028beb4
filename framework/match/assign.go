package match

// Assign gives to as many expected things as possible an actual one of their own
// that fits, by their indices. It returns the actual index for each expected one,
// or -1. Where several assignments are as large, which one is returned depends on
// the order alone. Fits is asked once for each pair.
func Assign(expected, actual int, fits func(expected, actual int) bool) []int {
	assignment := assignment{
		fits:   make([][]bool, expected),
		holder: filled(actual),
	}
	for e := range expected {
		assignment.fits[e] = make([]bool, actual)
		for a := range actual {
			assignment.fits[e][a] = fits(e, a)
		}
	}
	for e := range expected {
		assignment.place(e, make([]bool, actual))
	}
	result := filled(expected)
	for a, e := range assignment.holder {
		if e >= 0 {
			result[e] = a
		}
	}
	return result
}

type assignment struct {
	fits   [][]bool
	holder []int // by actual index: the expected one that has it, or -1
}

// place finds an actual one for e, moving others where that makes room.
func (s *assignment) place(e int, tried []bool) bool {
	for a := range s.holder {
		if !s.fits[e][a] || tried[a] {
			continue
		}
		tried[a] = true
		if s.holder[a] < 0 || s.place(s.holder[a], tried) {
			s.holder[a] = e
			return true
		}
	}
	return false
}

func filled(length int) []int {
	indices := make([]int, length)
	for i := range indices {
		indices[i] = -1
	}
	return indices
}
