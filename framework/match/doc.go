// Package match compares what a scenario expects with what was observed, part by
// part. It knows values as JSON has them and nothing of admission; package judge
// applies it to a whole framework.Result, and the scenario loader checks with
// [ValidateOperators] what it read.
//
// A mapping matches when each of its fields does, whatever else the actual one
// has. A list matches item by item and has the same length. A scalar is equal;
// numbers are compared by value, whatever Go type they have. Null matches null
// and absent alike. A mapping whose only key begins with "$" is an operator:
//
//	{$oneOf: [a, b]}       any of these
//	{$not: a}              not this
//	{$absent: true}        no such field (false: some value, null included)
//	{$exact: {...}}        this and nothing more, at every depth below
//	{$contains: a}         a list with an item that matches, or a text with this part
//	{$containsAll: [a, b]} a list with a match for each, in any order, each item used once
//	{$startsWith: a}       a text that begins so
//	{$nonEmpty: true}      neither absent, null, "", [], {} nor 0
//	{$number: {atLeast: 1, atMost: 9}} a number in a range
//	{$json: {...}}         a text that is JSON which matches
//	{$entries: [...]}      a mapping, matched as the list of its {key, value}
//
// Values that a Go program hands over may be typed (map[string]string, []string,
// structs with json tags): they count as the JSON that they encode to.
//
// # Promise
//
// Match is deterministic: the differences come in the order of the expected
// fields' names. It never panics, and an expectation that is not well-formed never
// holds, not even below a $not.
//
// A mapping expected where there is no field at all holds only if each of its
// fields would: {labels: {x: {$absent: true}}} holds without labels. Where there
// is an explicit null it does not.
//
// # Not promised
//
// Quantities, times and addresses are plain text: "1000m" is not "1". The texts of
// a Difference are for people: they may change, and long ones are cut. A Go value
// that contains itself is never done.
package match
