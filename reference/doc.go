// Package reference runs the plugins of Kubernetes itself through the suites of
// admissiontest. It is a module of its own, since it needs k8s.io/kubernetes.
//
// Each plugin of kube-apiserver has a Subject here, with requests as real ones and a
// waiver, with reason and source line, for each law that it breaks. What came of it
// is in docs/plugins.md, which the tests write (go test -run TestPlugins -update);
// what of it is a defect is in docs/findings.md.
package reference
