// Package console writes text that others can influence, such as the message of an API
// server, so that neither a terminal nor a CI system executes a part of it.
//
// A terminal executes control characters: they change colours, titles and what was written
// before. Characters that change the direction of text make it read as something else.
//
// GitHub Actions reads the output of a step line by line. A line that begins with "::",
// after white space, is a command ("::stop-commands::", "::add-mask::"), and "##[" is one
// anywhere in a line.
// Source: https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
// and src/Runner.Common/ActionCommand.cs of actions/runner.
//
// # Promise
//
// [NewWriter] and [Text] replace each character that [Printable] replaces, and separate the
// characters of commands with a space: ": :" and "## [". They change nothing else.
package console
