package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The profiles of testdata are of a program that calls testdata/lib: Go wrote them, one for a
// process without an argument, which calls Choose(false), and one for a process with an argument,
// which calls Choose(true) and Get.

// testGroups is one group with the package of testdata.
func testGroups() []group {
	return []group{{name: "the library", packages: []string{"k8s.io/apiserver/lib/..."}}, {name: "nothing", packages: []string{"k8s.io/none"}}}
}

func profileOf(t *testing.T, names ...string) profile {
	t.Helper()
	var text strings.Builder
	for _, name := range names {
		one, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		text.Write(one)
	}
	p, err := parseProfile(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A statement counts once, whatever the number of processes that ran it. What is in two groups counts in both, and
// once in the total.
func TestMeasure(t *testing.T) {
	const without, with = "without-argument.txt", "with-argument.txt"
	for name, test := range map[string]struct {
		profiles []string
		want     share
	}{
		"one process":         {[]string{without}, share{3, 12}},
		"another":             {[]string{with}, share{7, 12}},
		"both":                {[]string{with, without}, share{9, 12}},
		"both, several times": {[]string{without, with, with, without}, share{9, 12}},
	} {
		t.Run(name, func(t *testing.T) {
			twice := append(testGroups(), group{name: "again", packages: []string{"k8s.io/apiserver/lib"}})
			m := measure(profileOf(t, test.profiles...), twice)
			for what, s := range map[string]share{
				"total": m.total, "group": m.groups[0].share, "group again": m.groups[2].share, "package": m.packages["the library"][0].share,
			} {
				if s != test.want {
					t.Errorf("%s: got %+v, want %+v", what, s, test.want)
				}
			}
			if m.groups[1].statements != 0 {
				t.Errorf("the other group has %d statements", m.groups[1].statements)
			}
		})
	}
}

func TestLeftOut(t *testing.T) {
	for file, want := range map[string]bool{
		"k8s.io/kubernetes/plugin/pkg/admission/eventratelimit/apis/eventratelimit/v1alpha1/defaults.go": true,
		"k8s.io/apiserver/pkg/admission/plugin/webhook/testing/testcase.go":                              true,
		"k8s.io/apiserver/pkg/admission/plugin/webhook/testcerts/certs.go":                               true,
		"k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_test_context.go":                    true,
		"k8s.io/apiserver/pkg/admission/plugin/policy/generic/zz_generated.deepcopy.go":                  true,
		"k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_source.go":                          false,
		"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go":                         false,
	} {
		t.Run(file, func(t *testing.T) {
			if got := leftOut(file); got != want {
				t.Errorf("leftOut(%s) = %t", file, got)
			}
		})
	}
}

func TestGroups(t *testing.T) {
	for file, want := range map[string][]string{
		"k8s.io/apiserver/pkg/admission/chain.go":                                  {"admission core"},
		"k8s.io/apiserver/pkg/admission/metrics/metrics.go":                        {"admission core"},
		"k8s.io/apiserver/pkg/admission/plugin/webhook/accessors.go":               {"webhook plugins"},
		"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules/rules.go":  {"webhook plugins", "matching and namespace lifecycle"},
		"k8s.io/apiserver/pkg/admission/plugin/policy/matching/matching.go":        {"policy plugins", "matching and namespace lifecycle"},
		"k8s.io/apiserver/pkg/admission/plugin/cel/compile.go":                     {"policy plugins"},
		"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go":   {"matching and namespace lifecycle", "other plugins of k8s.io/apiserver"},
		"k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go":        {"other plugins of k8s.io/apiserver"},
		"k8s.io/apiserver/pkg/endpoints/handlers/patch.go":                         {"handlers of requests"},
		"k8s.io/apiserver/pkg/endpoints/handlers/watch.go":                         nil,
		"k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager/fieldmanager.go":     nil,
		"k8s.io/apiserver/pkg/util/webhook/client.go":                              {"client of webhooks"},
		"k8s.io/kubernetes/plugin/pkg/admission/security/podsecurity/admission.go": {"plugins of Kubernetes"},
		"k8s.io/kubernetes/plugin/pkg/auth/authorizer/node/graph.go":               nil,
	} {
		t.Run(file, func(t *testing.T) {
			var got []string
			for _, g := range groups() {
				if g.has(file) {
					got = append(got, g.name)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("groups of %s (-want +got):\n%s", file, diff)
			}
			covered := false
			for _, pattern := range patterns() {
				covered = covered || matches(pattern, path.Dir(file))
			}
			if got != nil && !covered {
				t.Errorf("%s is in a group, and not compiled with coverage", file)
			}
		})
	}
}

func TestShare(t *testing.T) {
	for s, want := range map[share]string{
		{0, 0}: "-", {0, 3}: "0.0 %", {1, 3}: "33.3 %", {999, 1000}: "99.9 %", {9999, 10000}: "99.9 %", {7, 7}: "100.0 %",
	} {
		t.Run(fmt.Sprintf("%d of %d", s.covered, s.statements), func(t *testing.T) {
			if got := s.String(); got != want {
				t.Errorf("%d of %d is %q, want %q", s.covered, s.statements, got, want)
			}
		})
	}
}
