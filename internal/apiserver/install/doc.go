// Package install installs the objects of scenarios on an API server, so that many
// scenarios share it and other clients do not notice:
//
//   - each scenario has a [Scope]: an ID, which is the name of its namespace, and the
//     objects that it installed;
//   - webhook configurations and policies are narrowed to the requests of their
//     scenario (narrow.go);
//   - webhooks without a clientConfig get the clientConfig of a Hook (webhooks.go);
//   - everything gets labels by which it is found for removal (labels.go).
package install
