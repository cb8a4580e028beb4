// Package redact decides which values of an API server a report does not show: the data of
// Secrets, tokens, the Authorization header, the extra fields of users, and the secrets in the URLs of Hooks.
//
// [Set.Fields] marks such values in objects, admission reviews and audit events by their
// place. A [Set] also collects them, and removes them from text in which a server or a webhook
// repeats them. [Set.Matcher] does so before a long text is cut. [Text] removes what has the form of a token or a private key, and the secret of [NewPathSecret].
//
// # Promise
//
// A value that is marked is never shown, whatever its length. Names of fields and keys
// are shown.
//
// # Not promised
//
// A Set does not remove values of fewer than four characters from text, nor values that a
// server changed before it repeated them. Secrets at other places, such as ConfigMaps, are
// not known.
package redact
