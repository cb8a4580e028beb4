// Package reflection finds and makes changes of Go objects by reflection: the difference of two objects,
// the fields that a plugin changed, edits as another plugin would make them, and memory that two
// objects share. It knows no plugins and no rules.
package reflection
