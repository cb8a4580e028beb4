// Package report holds what a run found, as one typed document, and writes it for
// people and for machines: to the console, as JSON and as JUnit XML.
//
// A [Report] is made by the engine. [WriteConsole], [WriteJSON] and [WriteJUnit]
// write it; [SaveDir] leaves the files in a folder. [Report.ExitCode] says what the
// process should end with.
//
// # Promise
//
// Each writer counts the outcomes itself, so that totals always sum, and writes
// them in the order of names (the console and JUnit by area): one Report gives the
// same text every time.
// An outcome without a known verdict counts as an error, never as a pass. Text of
// the server reaches a terminal or an XML file without control characters.
//
// The JSON keys are frozen within admissiontest.dev/v1alpha1: keys can be added,
// and none is renamed or removed.
//
// # Not promised
//
// The console's layout can change; read the JSON instead. A Report says nothing of
// when it was made.
package report
