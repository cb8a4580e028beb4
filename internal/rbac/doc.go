// Package rbac writes the manifest of the rights that scenarios need on an existing
// cluster: a role for what every run does, a role for each area of scenarios, and one for
// the transport.
//
//	manifest, err := rbac.New(rbac.Options{Scenarios: selected})
//	_, err = io.WriteString(os.Stdout, manifest.String())
//
// # Promise
//
// The roles have the rights that cluster.CheckRights and relay.Start check, and no others:
// both come from the same list. A name that is not known before the run (a user, or a group
// of custom resources, with a placeholder) becomes a rule for all names.
//
// # Not promised
//
// RBAC cannot name the namespaces of a run, because their names are random. Rules for
// objects in namespaces are therefore for all namespaces. docs/confine.yaml confines them.
package rbac
