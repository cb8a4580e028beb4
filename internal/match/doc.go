// Package match compares an expected JSON value with an actual one in part. It
// knows nothing of admission: package judge uses it to compare a framework.Result,
// and the scenario loader checks expectations with [ValidateOperators].
//
// A map matches if each of its fields does; the actual map can have more
// fields. A list matches if it has the same length and each item matches. A scalar
// must be equal; numbers of any Go type are compared by value. Null matches null
// and absent. A map whose only key begins with "$" is an operator:
//
//	{$oneOf: [a, b]}       any of these
//	{$not: a}              any other value, but neither absent nor null
//	{$absent: true}        no such field (false: any value, also null)
//	{$exact: {...}}        this and no other fields, at every depth
//	{$contains: a}         a list with an item that matches, or a string with this part
//	{$containsAll: [a, b]} a list with a match for each, in any order, each item used once
//	{$startsWith: a}       a string with this prefix
//	{$nonEmpty: true}      neither absent, null, "", [], {} nor 0
//	{$number: {atLeast: 1, atMost: 9}} a number in a range
//	{$json: {...}}         a string that is JSON and matches
//	{$jwt: {...}}          a JSON Web Token whose claims match; exp and nbf are seconds after iat
//	{$entries: [...]}      a map, compared as the list of its {key, value}
//
// Values can have any Go type that encodes to JSON (map[string]string, []string,
// structs with json tags). They are compared as that JSON.
//
// # Promise
//
// Match is deterministic: the differences are in the order of the expected
// fields' names. It never panics. An invalid expectation never matches, not even
// inside of $not.
//
// An expected map matches an absent field if each of its fields matches an
// absent one: {labels: {x: {$absent: true}}} matches if there are no labels. It does
// not match an explicit null.
//
// # Not promised
//
// Quantities, times and addresses are compared as texts: "1000m" is not "1". The
// texts of a Difference can change, and long ones are cut. A Go value that contains
// itself makes Match run forever.
package match
