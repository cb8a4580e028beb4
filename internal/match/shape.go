package match

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
)

// shape converts a value to its JSON form, one level deep: nil, bool, string, a
// number, map[string]any, []any, or Absent.
func shape(value any) any {
	switch value := value.(type) {
	case nil, Absent, bool, string, json.Number, int, int64, float64:
		return value
	case map[string]any:
		if value == nil {
			return nil
		}
		return value
	case []any:
		if value == nil {
			return nil
		}
		return value
	default:
		return encoded(value)
	}
}

// unencodable is a Go value without a JSON form. It equals nothing.
type unencodable struct {
	goType string
}

// encoded encodes a value to JSON and decodes it.
func encoded(value any) any {
	var back any
	text, err := json.Marshal(value)
	if err == nil {
		back, err = decode(text)
	}
	if err != nil {
		return unencodable{fmt.Sprintf("%T", value)}
	}
	return back
}

// numeric is a number as the API server decodes it: an integer of 64 bits, or else
// the nearest float64.
type numeric struct {
	isWhole bool
	whole   int64
	float   float64
}

// number returns a value that shape returned as a number.
func number(value any) (numeric, bool) {
	switch value := value.(type) {
	case int:
		return wholeNumber(int64(value)), true
	case int64:
		return wholeNumber(value), true
	case float64:
		return numeric{float: value}, !math.IsNaN(value) && !math.IsInf(value, 0)
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return wholeNumber(whole), true
		}
		float, err := value.Float64()
		return numeric{float: float}, err == nil
	default:
		return numeric{}, false
	}
}

func wholeNumber(whole int64) numeric {
	return numeric{isWhole: true, whole: whole, float: float64(whole)}
}

// compare is exact for integers.
func (n numeric) compare(other numeric) int {
	if n.isWhole && other.isWhole {
		return cmp.Compare(n.whole, other.whole)
	}
	return cmp.Compare(n.float, other.float)
}
