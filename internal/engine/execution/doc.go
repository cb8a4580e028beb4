// Package execution runs one scenario on one target: a [Case] arranges what the scenario is given,
// carries out its steps, judges the results, and says what a failure means.
//
// # Promise
//
//   - A panic while a step is carried out is an error of the scenario, not the end of the process.
//   - A mistake in the files of the scenario has its position in them.
//   - What the infrastructure or another client did is told apart from a failure of the server,
//     and what was not observed is never a pass.
//
// # Not promised
//
// A Case does not wait, after Arrange and Uninstall, until the API server acts on what they wrote:
// the engine does so once for many cases.
package execution
