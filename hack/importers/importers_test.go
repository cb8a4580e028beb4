package importers

import (
	"slices"
	"testing"

	"golang.org/x/mod/modfile"
)

// A library that is not at the version of the project is named, apart from Kubernetes; one that the build does
// not have is not.
func TestRaised(t *testing.T) {
	file, err := modfile.ParseLax("go.mod", []byte(`module example.com/project

require (
	k8s.io/api v0.34.3
	k8s.io/apiserver v0.34.3
	k8s.io/kubelet v0.34.3
	sigs.k8s.io/controller-runtime v0.22.5
	example.com/other v1.0.0
)
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	kubernetes, others := raised(file, map[string]module{
		"k8s.io/api": {Version: "v0.34.3"}, "k8s.io/apiserver": {Version: "v0.36.3"}, "sigs.k8s.io/controller-runtime": {Version: "v0.24.1"}, "example.com/other": {Version: "v1.1.0"},
	})
	want := []string{
		"example.com/project requires example.com/other v1.0.0, and with admissiontest it gets v1.1.0",
		"example.com/project requires k8s.io/apiserver v0.34.3, and with admissiontest it gets v0.36.3",
		"example.com/project requires sigs.k8s.io/controller-runtime v0.22.5, and with admissiontest it gets v0.24.1",
	}
	if got := append(others, kubernetes...); len(others) != 1 || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
