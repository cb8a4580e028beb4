// Package console writes text that others can influence, such as the message of an API
// server, so that a CI system does not take a part of it as a command.
//
// GitHub Actions reads the output of a step line by line. A line that begins with "::",
// after white space, is a command ("::stop-commands::", "::add-mask::"), and "##[" is one
// anywhere in a line.
// Source: https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
// and src/Runner.Common/ActionCommand.cs of actions/runner.
//
// # Promise
//
// [NewWriter] and [Text] separate these characters with a space: ": :" and "## [". They
// change nothing else. Every character that some reader takes as the end of a line counts
// as one.
package console
