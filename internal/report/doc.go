// Package report has the document with the result of a run, and writes it for people and programs:
// console, JSON, JUnit XML, HTML and Markdown.
//
// The engine creates a [Report]. [WriteConsole], [WriteJSON], [WriteJUnit], [WriteHTML] and
// [WriteMarkdown] write it; [SaveDir] writes the files of a report directory. [Read] reads a
// report, [Merge] joins the reports of shards, and [Compare] compares two runs.
// [Report.ExitCode] returns the exit code of the process.
//
// # Promise
//
// Each writer counts the outcomes itself, so the totals are always the sum of the outcomes.
// Outcomes are sorted by name (on the console and in JUnit by area first), so the same Report
// always gives the same text. An outcome without a known verdict counts as an error, never as a
// pass. Control characters in text from the server are replaced.
//
// The JSON keys are frozen within admissiontest.dev/v1alpha1: keys can be added, but not
// renamed or removed.
//
// # Not promised
//
// The layout of the console output can change; read the JSON instead.
package report
