// Package redact decides which values of an API server a report does not show: the data of
// Secrets, tokens, the Authorization header, the extra fields of users, and the secrets in the URLs of Hooks.
//
// [Fields] marks such values in objects, admission reviews and audit events by their
// place. [Text] removes what has the form of a token or a private key, and the secret of [NewPathSecret].
//
// # Promise
//
// A value that is marked is never shown, whatever its length. Names of fields and keys
// are shown.
//
// # Not promised
//
// What a server or a webhook says in a message is shown, also if it repeats the data of a Secret there. Secrets at other
// places, such as ConfigMaps, are not known.
package redact

import "github.com/admissiontest/admissiontest/internal/match"

// Fields returns a copy of a decoded JSON object, or of one that contains such objects,
// in which the values that are not shown are match.Hidden.
func Fields(fields map[string]any) map[string]any { return markedObject(fields, "", "") }

// Matcher returns a Matcher whose texts do not have what Text removes.
func Matcher() match.Matcher { return match.Matcher{Hide: Text} }
