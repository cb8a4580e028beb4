// Package report has the result of a run as one document, and writes it to the console,
// as JSON and as JUnit XML.
//
// The engine creates a [Report]. [WriteConsole], [WriteJSON] and [WriteJUnit] write it;
// [SaveDir] writes the files into a directory. [Report.ExitCode] returns the exit code of
// the process.
//
// # Promise
//
// Each writer counts the outcomes itself, so totals always sum. Outcomes are in the order
// of their names (on the console and in JUnit by area), so one Report always gives the
// same text. An outcome without a known verdict counts as an error, never as a pass. Text
// from the server is written without control characters.
//
// The JSON keys are frozen within admissiontest.dev/v1alpha1: keys can be added, but not
// renamed or removed.
//
// # Not promised
//
// The layout of the console output can change; read the JSON instead.
package report
