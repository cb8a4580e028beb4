// Package execution runs one scenario on one target: a [Case] installs the given objects, runs the
// steps, judges the results, and says what a failure means.
//
// # Promise
//
//   - A panic in a step is an error of the scenario. It does not end the process.
//   - The error about a mistake in a file of the scenario has the position of the mistake.
//   - An effect of the infrastructure or of another client is not a failure of the server, and what
//     was not observed is never a pass.
//
// # Not promised
//
// A Case does not wait, after Arrange and Uninstall, until the API server acts on what they wrote:
// the engine does so once for many cases.
package execution
