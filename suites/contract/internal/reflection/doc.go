// Package reflection compares and changes Go objects by reflection. It finds the difference of two
// objects, the fields that a plugin changed, and the memory that two objects share, and makes edits
// like the memory of another plugin. It does not depend on plugins or rules.
package reflection
