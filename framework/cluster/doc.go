// Package cluster is the Target for any API server that a rest.Config reaches.
//
// A scenario is opened ([Target.Open]) in a namespace of its own, its manifests
// are installed ([Target.Put]), and after [Target.Settle] the API server acts on
// all of them. Then requests are sent ([Target.Do]).
//
// # Promise
//
//   - Nobody else's request reaches a Hook of ours or is changed by a policy of
//     ours: every webhook configuration and policy is narrowed to its scenario
//     before it is written. See narrow.
//   - There are no sleeps. Settle writes a sentinel of each kind last and asks, by
//     dry-run requests, until the sentinels answer.
//   - Everything created carries RunLabel, and Cleanup removes it by that label,
//     also after the process that created it was killed.
//
// # Not promised
//
// Where several API servers answer at one address, Settle speaks for the one that
// answered it and for those that EndpointSlices name and that can be reached from
// here. Of others Progress is told.
package cluster
