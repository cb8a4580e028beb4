package rbac

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/relay"
)

// Options choose what a Manifest has.
type Options struct {
	// Scenarios are the scenarios to run. Without scenarios, the Manifest only has the role of the
	// engine.
	Scenarios []scenario.Scenario
	// Service adds the role for transport service.
	Service bool
	// Namespace and Account are the namespace and name of the ServiceAccount that runs the
	// scenarios. Empty means "admissiontest". The names of the roles begin with Account.
	Namespace, Account string
}

// Role is a ClusterRole, or a Role if it has a namespace.
type Role struct {
	metav1.ObjectMeta
	// About says in one line what the role is for.
	About string
	// Rules are the rules of the role.
	Rules []rbacv1.PolicyRule
}

// Manifest is the account of a run and its roles.
type Manifest struct {
	// Namespace and Account are the namespace and name of the ServiceAccount.
	Namespace, Account string
	// Roles has the role of the engine, the roles of the areas, and the role of the transport, in
	// this order. An area that needs no other rights than the engine has no role.
	Roles []Role
	// Unknown are kinds whose rights are missing, because neither Kubernetes nor a
	// CustomResourceDefinition of the scenarios defines them.
	Unknown []schema.GroupVersionKind
}

const defaultName = "admissiontest"

// New returns the manifest for a selection of scenarios. It returns an error if Namespace or
// Account is not a valid name.
func New(options Options) (Manifest, error) {
	m, err := named(options)
	if err != nil {
		return m, err
	}
	areas := map[string][]scenario.Scenario{}
	for _, s := range options.Scenarios {
		areas[areaOf(s)] = append(areas[areaOf(s)], s)
	}
	run := apiserver.Rights(nil).Run
	m.add("engine", "What every run needs: to create namespaces and objects for them, to wait for them, and to remove them.", run)
	for _, area := range slices.Sorted(maps.Keys(areas)) {
		needs := Needs(areas[area])
		required := apiserver.Rights(needs)
		for _, kind := range required.Unknown {
			if !slices.Contains(m.Unknown, kind) {
				m.Unknown = append(m.Unknown, kind)
			}
		}
		m.add(area, fmt.Sprintf("What the requests of %s in the area %s need in addition.", count(len(needs), "scenario"), area), required.Scenarios)
	}
	if options.Service {
		own := slices.DeleteFunc(relay.Rights(), func(right apiserver.Right) bool { return slices.Contains(run, right) })
		m.add("transport-service", "What --transport service needs in addition: a relay in a namespace "+relay.NamespacePrefix+"RUN.", own)
	}
	return m, nil
}

// named returns a Manifest with the names of the options, and without roles.
func named(options Options) (Manifest, error) {
	m := Manifest{Namespace: cmp.Or(options.Namespace, defaultName), Account: cmp.Or(options.Account, defaultName)}
	if found := validation.IsDNS1123Label(m.Namespace); len(found) > 0 {
		return m, fmt.Errorf("namespace %q: %s", m.Namespace, strings.Join(found, ", "))
	}
	if found := validation.IsDNS1123Subdomain(m.Account); len(found) > 0 {
		return m, fmt.Errorf("account %q: %s", m.Account, strings.Join(found, ", "))
	}
	return m, nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// areaOf returns the area of a scenario as a part of a name.
func areaOf(s scenario.Scenario) string {
	area := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(s.Area), "-")
	return cmp.Or(strings.Trim(area, "-"), "scenarios")
}

// add adds the roles that grant rights: one for all namespaces, and one for each namespace
// that rights are restricted to.
func (m *Manifest) add(name, about string, rights []apiserver.Right) {
	byNamespace := map[string][]apiserver.Right{}
	for _, right := range rights {
		byNamespace[right.Namespace] = append(byNamespace[right.Namespace], right)
	}
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		about := about
		if namespace != "" {
			about = "The same in namespace " + namespace + "."
		}
		m.Roles = append(m.Roles, Role{
			ObjectMeta: metav1.ObjectMeta{Name: m.Account + "-" + name, Namespace: namespace},
			About:      about, Rules: rules(byNamespace[namespace]),
		})
	}
}
