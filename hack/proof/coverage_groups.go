package main

import (
	"path"
	"slices"
	"strings"
)

// group is a part of the code that is measured. A package can be in several groups.
type group struct {
	name string
	// packages are import paths; one that ends with /... includes the packages below it.
	packages []string
	// except are packages, written alike, that are not in the group.
	except []string
	// files are the names of the files that count; nil means all.
	files []string
}

const (
	apiserver   = "k8s.io/apiserver/pkg/"
	plugins     = apiserver + "admission/plugin/"
	kubernetes  = "k8s.io/kubernetes/plugin/pkg/admission"
	podSecurity = "k8s.io/pod-security-admission"
)

// groups returns what is measured, in the order of the document.
func groups() []group {
	return []group{{
		name: "webhook plugins", packages: []string{plugins + "webhook/..."},
	}, {
		name: "policy plugins", packages: []string{plugins + "policy/...", plugins + "cel/..."},
	}, {
		name: "matching and namespace lifecycle",
		packages: []string{
			plugins + "webhook/predicates/...", plugins + "webhook/matchconditions/...",
			plugins + "policy/matching/...", plugins + "namespace/...",
		},
	}, {
		name:     "other plugins of k8s.io/apiserver",
		packages: []string{plugins + "..."},
		except:   []string{plugins + "webhook/...", plugins + "policy/...", plugins + "cel/..."},
	}, {
		name: "admission core", packages: []string{apiserver + "admission/..."}, except: []string{plugins + "..."},
	}, {
		name: "handlers of requests", packages: []string{apiserver + "endpoints/handlers"},
		files: []string{"create.go", "update.go", "patch.go", "delete.go", "rest.go"}, // rest.go has connect
	}, {
		name: "client of webhooks", packages: []string{apiserver + "util/webhook"},
	}, {
		name: "plugins of Kubernetes", packages: []string{kubernetes + "/...", podSecurity + "/..."},
	}}
}

// patterns returns the packages that are compiled with coverage.
func patterns() []string {
	return []string{apiserver + "admission/...", apiserver + "endpoints/handlers", apiserver + "util/webhook", kubernetes + "/...", podSecurity + "/..."}
}

// has reports whether a file belongs to the group.
func (g group) has(file string) bool {
	pkg := path.Dir(file)
	in := func(pattern string) bool { return matches(pattern, pkg) }
	return slices.ContainsFunc(g.packages, in) && !slices.ContainsFunc(g.except, in) &&
		(g.files == nil || slices.Contains(g.files, path.Base(file)))
}

// matches reports whether an import path matches a pattern, as in group.packages.
func matches(pattern, pkg string) bool {
	above, all := strings.CutSuffix(pattern, "/...")
	return pkg == above || all && strings.HasPrefix(pkg, above+"/")
}

// leftOut reports whether a file is not measured because of its name: the types of
// configurations, which are mostly generated, and helpers of tests. Generated files are not
// measured either.
func leftOut(file string) bool {
	for _, folder := range strings.Split(path.Dir(file), "/") {
		switch folder {
		case "apis", "testing", "testcerts":
			return true
		}
	}
	name := strings.TrimSuffix(path.Base(file), ".go")
	return strings.Contains(name, "_test_") || strings.HasPrefix(name, "zz_generated.")
}
