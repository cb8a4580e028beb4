package kinds_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"

	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// TestBuiltInResources compares resources.tsv with what a kube-apiserver serves. With -update it writes the file.
func TestBuiltInResources(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(testserver.Own(t))
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, list := range lists {
		for _, r := range list.APIResources {
			scope := "cluster"
			if r.Namespaced {
				scope = "namespaced"
			}
			kind := r.Kind
			if r.Group != "" || r.Version != "" {
				kind = r.Group + "/" + r.Version + "/" + r.Kind
			}
			stored := ""
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") {
				stored = "delete"
			}
			lines = append(lines, strings.Join([]string{list.GroupVersion, r.Name, kind, scope, r.SingularName, strings.Join(r.ShortNames, ","), stored}, "\t")+"\n")
		}
	}
	slices.Sort(lines)
	golden.Compare(t, "resources.tsv", strings.Join(lines, ""))
}
