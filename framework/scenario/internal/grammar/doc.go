// Package grammar has what the loader and the JSON Schema both know about a file: which fields its
// structs have, which of them are actions, and the forms of names.
package grammar
