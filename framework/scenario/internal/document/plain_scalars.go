package document

import (
	"regexp"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"
)

// scalar returns the Node of a scalar without quotes. Numbers have the form of
// JSON, without an exponent. A scalar that versions of YAML or parsers read in
// different ways is refused.
func (b *builder) scalar(from *yaml.Node) *Node {
	raw := from.Value
	scalar := b.at(from, KindText)
	scalar.Value, scalar.Raw = raw, raw
	switch raw {
	case "", "~", "null", "Null", "NULL":
		scalar.Kind, scalar.Value = KindNull, nil
		return scalar
	case "true", "True", "TRUE":
		scalar.Kind, scalar.Value = KindBool, true
		return scalar
	case "false", "False", "FALSE":
		scalar.Kind, scalar.Value = KindBool, false
		return scalar
	}
	var err error
	switch {
	case isInteger.MatchString(raw):
		scalar.Kind = KindInteger
		scalar.Value, err = strconv.ParseInt(raw, 10, 64)
	case isDecimal.MatchString(raw):
		scalar.Kind = KindNumber
		scalar.Value, err = strconv.ParseFloat(raw, 64)
	case isOdd.MatchString(strings.ReplaceAll(raw, "_", "")):
		b.fail(from, "a value that is a string for some YAML parsers and a number for others; expected a plain decimal number or a string in quotes", "put it in quotes, or write the number in decimal digits")
	case isAmbiguous.MatchString(raw):
		b.fail(from, "a value that is a string for some YAML parsers and a boolean for others; expected true, false or a string in quotes", "put it in quotes")
	}
	if err != nil {
		b.fail(from, "the number is too large; expected one of 64 bits", "write it in quotes if it is a string")
	}
	return scalar
}

var (
	isInteger = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	isDecimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)\.[0-9]+$`)
	// isOdd matches, without underscores, what is a number in YAML 1.1 or 1.2 or for strconv, and not in JSON:
	// hexadecimal, octal and binary, with a plus or an exponent, without digits before or after the point, infinite or
	// none.
	isOdd = regexp.MustCompile(`(?i)^-?\+?(0x[0-9a-f]+\.?[0-9a-f]*(p[-+]?[0-9]+)?|0o[0-7]+|0b[01]+|[0-9]+\.?[0-9]*(e[-+]?[0-9]+)?|\.[0-9]+(e[-+]?[0-9]+)?)$|^[-+]*\.(inf|nan)$`)
	// isAmbiguous matches words that are booleans in YAML 1.1, as kubectl reads it, and strings in YAML 1.2.
	isAmbiguous = regexp.MustCompile(`^(yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF)$`)
)
