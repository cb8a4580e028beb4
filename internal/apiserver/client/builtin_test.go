package client

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"

	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// kinds.tsv has what an API server serves.
func TestBuiltIn(t *testing.T) {
	asked, err := discovery.NewDiscoveryClientForConfig(testserver.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := asked.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	served := NewResources()
	served.Add(lists...)
	var lines []string
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") {
				continue
			}
			verb := ""
			if slices.Contains(resource.Verbs, "list") && slices.Contains(resource.Verbs, "delete") {
				verb = "delete"
			}
			lines = append(lines, strings.Join([]string{list.GroupVersion, resource.Kind, resource.Name, scope(resource.Namespaced), verb}, "\t")+"\n")
		}
	}
	slices.Sort(lines)
	golden.Compare(t, "kinds.tsv", strings.Join(lines, ""))
	built := BuiltIn()
	for _, namespaced := range []bool{true, false} {
		t.Run(fmt.Sprintf("namespaced %t", namespaced), func(t *testing.T) {
			want, got := served.Deletable(namespaced), built.Deletable(namespaced)
			if len(got) != len(want) || len(got) < 10 {
				t.Errorf("namespaced %t: %d resources, want %d", namespaced, len(got), len(want))
			}
		})
	}
}
