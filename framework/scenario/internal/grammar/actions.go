package grammar

// RequestActions are the fields of a step that send one request.
func RequestActions() []string {
	return []string{"create", "update", "apply", "get", "list", "patch", "delete", "deleteCollection", "connect"}
}

// OtherActions are the fields of a step that do something else. A step has exactly one of both.
func OtherActions() []string {
	return []string{"parallel", "install", "remove", "script", "wait", "metrics", "files"}
}

// PatchKinds are the fields of a patch of which it has exactly one.
func PatchKinds() []string { return []string{"json", "merge", "strategic"} }

// The operations of a case of a PolicyTest.
const (
	Create = "CREATE"
	Update = "UPDATE"
	Delete = "DELETE"
)

// Operations are the operations of a case of a PolicyTest.
func Operations() []string { return []string{Create, Update, Delete} }
