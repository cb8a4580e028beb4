package scenario

import (
	"fmt"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// scalar returns the node of a scalar without quotes. Numbers are written as JSON
// writes them, without an exponent; what YAML's versions and tools read in
// different ways is refused rather than guessed at.
func (b *builder) scalar(from *yaml.Node) *node {
	raw := from.Value
	scalar := at(from, kindText)
	scalar.value, scalar.raw = raw, raw
	switch raw {
	case "", "~", "null", "Null", "NULL":
		scalar.kind, scalar.value = kindNull, nil
		return scalar
	case "true", "True", "TRUE":
		scalar.kind, scalar.value = kindBool, true
		return scalar
	case "false", "False", "FALSE":
		scalar.kind, scalar.value = kindBool, false
		return scalar
	}
	switch numberForm(raw) {
	case formInteger:
		number, err := strconv.ParseInt(raw, 10, 64)
		if err != nil {
			b.fail(from, fmt.Sprintf("the integer %s is too large; expected at most 64 bits", shown(raw)), "write it in quotes if it is a text")
		}
		scalar.kind, scalar.value = kindInteger, number
	case formDecimal:
		number, err := strconv.ParseFloat(raw, 64)
		if err != nil {
			b.fail(from, fmt.Sprintf("the number %s is too large; expected one of 64 bits", shown(raw)), "write it in quotes if it is a text")
		}
		scalar.kind, scalar.value = kindNumber, number
	case formOdd:
		b.fail(from, fmt.Sprintf("%s without quotes is a text to some readers of YAML and a number to others; expected a plain decimal number or a text in quotes", raw),
			fmt.Sprintf("write %q for the text, or the number in decimal digits", raw))
	case formText:
		if ambiguousWord(raw) {
			b.fail(from, fmt.Sprintf("%s without quotes is a text to some readers of YAML and a truth value to others; expected true, false or a text in quotes", raw),
				fmt.Sprintf("write %q for the text", raw))
		}
	}
	return scalar
}

// ambiguousWord reports whether YAML 1.1, as kubectl reads it, takes a word as a
// truth value where YAML 1.2 does not.
func ambiguousWord(raw string) bool {
	switch raw {
	case "yes", "Yes", "YES", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF":
		return true
	default:
		return false
	}
}

// form is how a plain scalar is written.
type form int

const (
	formText form = iota
	formInteger
	formDecimal
	// formOdd is a number in some version of YAML, and not in JSON or not at once.
	formOdd
)

func numberForm(raw string) form {
	switch strings.ToLower(strings.TrimLeft(raw, "+-")) {
	case ".inf", ".nan":
		return formOdd
	}
	unsigned := strings.TrimPrefix(raw, "-")
	whole, fraction, point := strings.Cut(unsigned, ".")
	if digits(whole) && (len(whole) == 1 || whole[0] != '0') {
		if !point {
			return formInteger
		}
		if digits(fraction) {
			return formDecimal
		}
	}
	if !strings.ContainsAny(unsigned[:min(2, len(unsigned))], "0123456789") {
		return formText // neither a number, nor ".5", nor "+5"
	}
	loose := strings.ReplaceAll(strings.TrimPrefix(unsigned, "+"), "_", "")
	if _, err := strconv.ParseInt(loose, 0, 64); err == nil {
		return formOdd
	}
	if _, err := strconv.ParseFloat(loose, 64); err == nil {
		return formOdd
	}
	if digits(loose) { // 0899, or an octal beyond 64 bits
		return formOdd
	}
	return formText
}

// digits reports whether a text is one decimal digit or more and nothing else.
func digits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}
