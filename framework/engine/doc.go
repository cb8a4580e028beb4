// Package engine carries out scenarios on a target and says what became of them:
// select, arrange, fence, act, judge, account.
//
// [Run] groups the selected scenarios by the server profile they ask for. Servers
// with a profile start, run and stop beside one another while the default server
// starts, and the scenarios of this one come after theirs. On each server they run in waves: all scenarios of a wave are arranged at once, one
// fence waits until the API server acts on everything they installed, and then
// they act at the same time. Scenarios share a wave unless they give different
// objects of one name, or ask to be alone.
//
// # Promise
//
//   - Every selected scenario gets exactly one outcome, and outcomes are in the
//     order of the scenarios' names, whatever the order of their execution.
//   - A fault of ours or of the infrastructure is never a failure of the server,
//     and what was not observed is never a success.
//   - What was arranged is removed again when the context is cancelled too.
//
// # Not promised
//
// Steps after the first whose expectation failed are not carried out: their
// state would not be the one that their author meant.
package engine
