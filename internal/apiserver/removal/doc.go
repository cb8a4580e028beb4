// Package removal removes from an API server what a run created, and waits until it is
// gone.
//
// Webhook configurations, policies and the namespaces of scenarios are found by the run's label, other
// objects by their names, which contain the ID of the run, or by the journal of the run. Labels and names are
// compared here: an API server can ignore selectors. What cannot be removed does not keep the rest. Webhook
// configurations and policies go first,
// because they can refuse the removal of the rest. Then the namespaces are deleted and
// emptied, and then the other cluster-scoped objects. [Remover.RemoveScenarios] and
// [Remover.Cleanup] return when nothing is left, or an error that names what is left.
package removal
