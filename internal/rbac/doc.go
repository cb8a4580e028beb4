// Package rbac writes the manifest of the rights that scenarios need on an existing
// cluster: a role for what every run does, a role for each area of scenarios, and one for
// the transport.
//
//	manifest, err := rbac.New(rbac.Options{Scenarios: selected})
//	_, err = io.WriteString(os.Stdout, manifest.String())
//
// # Promise
//
// The roles have the rights that cluster.CheckRights and relay.Start check, and no others: both
// come from the same list. If a name is not known before the run, because it has a placeholder, the
// rule is for all names. Examples are users and groups of custom resources.
//
// # Not promised
//
// RBAC cannot name the namespaces of a run, because their names are random. So the rules for
// namespaced objects apply to all namespaces. docs/confine.yaml restricts the account to the
// namespaces of runs.
package rbac
