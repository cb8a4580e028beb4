// Package shipped reads the manifests that a project ships, such as the output of kustomize or
// helm, and picks what admission needs:
//
//	project, err := shipped.Load("config/rendered.yaml", "config/crd/bases")
//	for _, line := range project.LeftOut() {
//		fmt.Fprintln(os.Stderr, line)
//	}
//
// # Promise
//
// The values are those that kubectl reads. A Project has the webhook configurations, policies,
// bindings and CustomResourceDefinitions of the files, and the parameters that these bindings
// name. Lists are read as their items. LeftOut names everything else. Errors are
// scenario.Errors, with file and line.
//
// # Not promised
//
// Nothing is rendered: a kustomization.yaml or a template of Helm is not read.
package shipped
