// Package redact decides what an output does not show: secrets, and what a terminal or a CI system would execute.
//
// Secrets are the data of Secrets, tokens, the Authorization header, the extra fields of users, and the secrets in the URLs
// of Hooks. [Fields] marks such values in objects, admission reviews and audit events by their place. [Text] removes what
// has the form of a token or a private key, and the secret of [NewPathSecret].
//
// A terminal executes control characters, and characters that change the direction of text make it read as something else.
// GitHub Actions reads the output of a step line by line: a line that begins with "::", after white space, is a command,
// and "##[" is one anywhere in a line.
// Source: https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
// and src/Runner.Common/ActionCommand.cs of actions/runner.
//
// # Promise
//
// A value that is marked is never shown, whatever its length. Names of fields and keys are shown. [NewWriter] and
// [Escaped] replace each character that [Printable] replaces, and separate the characters of commands with a space: ": :"
// and "## [". They change nothing else.
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
