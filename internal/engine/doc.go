// Package engine runs scenarios on a target and reports their outcomes.
//
// [Run] groups the selected scenarios by the server profile that they ask for. Servers
// with a profile start, run and stop at the same time, while the default server starts;
// the scenarios of the default server follow. On each server the scenarios run in waves:
// all scenarios of a wave are arranged at the same time, one fence waits until the API
// server acts on everything they installed, and then they act at the same time.
// Scenarios are in one wave unless they give different objects of one name, or are
// exclusive.
//
// The engine knows a target only by the interfaces of package target. Package execution arranges
// and carries out one scenario. This package decides which scenarios run, when, on which server, and whether
// again. It has the profiles, the named sets of requirements that an API server can claim, and judges such claims.
//
// # Promise
//
//   - Every selected scenario gets exactly one outcome. Outcomes are in the order of the
//     names of the scenarios, whatever the order of execution.
//   - A mistake of admissiontest or a failure of the infrastructure is never a failure of
//     the server, and what was not observed is never a pass.
//   - Cleanup also runs when the context is cancelled.
//
// # Not promised
//
// Steps after the first that failed are not run: the state would not be the one that
// their author expects.
package engine
