// Package reference runs Kubernetes' own plugins through the contract suite. It is a nested
// module, because it needs k8s.io/kubernetes.
//
// Each plugin of kube-apiserver has a file in testdata/subjects: a Subject with realistic requests, and a waiver
// for each rule that it breaks, with the reason and the source line. The results are in
// docs/plugins.md, which the tests write (go test -run TestPlugins -update). Defects are in
// docs/findings.md.
package reference
