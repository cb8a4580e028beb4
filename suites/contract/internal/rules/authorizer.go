package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// authorizerRules returns the rule for the questions that a plugin asks the authorizer.
func authorizerRules() []check.Rule {
	return []check.Rule{{
		ID: "F6", Name: "authorizer-is-asked-about-the-request", Level: framework.Should,
		Title: "The plugin asks the authorizer about the user, the namespace and the name of each request, and about no more: not about all namespaces, all names or all verbs, and not about a namespace for a cluster-scoped resource.",
		Why:   "A right in one namespace must not open another, and the decision for one user must not be that for the next. If a question is about all namespaces or names, users whose role is in one namespace are refused.",
		Fix:   "Fill authorizer.AttributesRecord from the attributes of the request: GetUserInfo, GetNamespace, GetName and GetSubresource. If decisions are cached, use all fields of the question as key.",
		Source: []string{
			"https://pkg.go.dev/k8s.io/apiserver/pkg/authorization/authorizer#Attributes",
			"https://github.com/kyverno/kyverno/issues/12583",
			"https://github.com/Kuadrant/kuadrant-console-plugin/pull/297",
		},
		Check: checkQuestions,
	}}
}

// question is what a plugin asked the authorizer.
type question = authorizer.AttributesRecord

// asking returns a function that sends a request to a new plugin, always the same, and returns what the plugin asks the authorizer,
// which allows everything. Reviews are questions, too.
func asking(t *check.T, more ...runtime.Object) func(framework.Request) []question {
	recorder := fakes.Allow()
	w := t.World(fakes.WithAuthorizer(recorder), fakes.WithObjects(more...))
	h, err := t.BuildWith(w, t.Initializer(w, fakes.InjectAuthorizer(recorder)))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return func(request framework.Request) []question {
		before := len(recorder.Requests())
		check.Send(t.Context(), h, request)
		return slices.DeleteFunc(recorder.Requests()[before:], func(q question) bool { return q.User == nil })
	}
}

func checkQuestions(t *check.T) {
	ask, h, asks := asking(t), t.Plugin(), false
	for _, request := range t.Requests() {
		given, ok := t.AttributesFor(h, request, framework.Validating)
		questions := ask(request)
		if !ok || len(questions) == 0 {
			continue
		}
		asks = true
		t.Reached()
		for _, q := range questions {
			if wrong := tooMuch(h.World().RESTMapper(), given, q, questions); wrong != "" {
				t.Errorf("%s: the plugin asks the authorizer %q: %s", request, said(q), wrong)
			}
		}
		compareQuestions(t, request, given)
	}
	if !asks && !slices.ContainsFunc(check.InjectedNames(h.Initializer().Log()), isAuthorizer) {
		t.Unsupported("the plugin asks no authorizer")
	}
}

// isAuthorizer reports whether an interface of this name gets the authorizer.
func isAuthorizer(name string) bool {
	return name == "WantsAuthorizer" || name == "WantsUnconditionalAuthorizer"
}

// said returns a question in short: "mallory use teams.example.com default/blue".
func said(q question) string {
	resource := schema.GroupResource{Group: q.APIGroup, Resource: q.Resource}.String()
	if q.Subresource != "" {
		resource += "/" + q.Subresource
	}
	return fmt.Sprintf("%s %s %s %s/%s%s", q.User.GetName(), q.Verb, resource, q.Namespace, q.Name, q.Path)
}

func isAmong(all []question, wanted string) bool {
	return slices.ContainsFunc(all, func(q question) bool { return said(q) == wanted })
}

// tooMuch returns what is wrong with a question: it is about more than the request. Empty means nothing, or that the plugin
// asks several questions about this right, from the narrow to the wide.
func tooMuch(mapper meta.RESTMapper, given check.Attributes, q question, all []question) string {
	own := q.APIGroup == given.Resource.Group && q.Resource == given.Resource.Resource
	named := given.Name != "" && (given.Operation != admission.Create || given.Subresource != "") && (q.Verb != "create" || q.Subresource != "")
	many := slices.Contains([]string{"list", "watch", "deletecollection"}, q.Verb)
	one := slices.Contains([]string{"create", "update", "patch", "get", "delete"}, q.Verb)
	sameVerb := q.Verb == strings.ToLower(string(given.Operation)) || given.Operation == admission.Connect && (q.Verb == "create" || q.Verb == "get")
	switch scope := scopeOf(mapper, q); {
	case !q.ResourceRequest, slices.ContainsFunc(all, func(other question) bool {
		return other.Verb == q.Verb && other.APIGroup == q.APIGroup && other.Resource == q.Resource && said(other) != said(q)
	}):
		return ""
	case q.Verb == "*", q.Verb == string(given.Operation):
		return "no request has this verb, want that of what the user must be allowed to do"
	case scope == meta.RESTScopeNameNamespace && q.Namespace == "" && given.Namespace != "" && !many:
		return fmt.Sprintf("this is about all namespaces, want namespace %q", given.Namespace)
	case scope == meta.RESTScopeNameRoot && q.Namespace != "" && q.Resource != "namespaces" && (many || one):
		return "the resource is cluster-scoped, and a role in the namespace is enough, want no namespace"
	case own && named && q.Name == "" && !many:
		return fmt.Sprintf("this is about all names, want name %q", given.Name)
	case own && sameVerb && given.Subresource != "" && q.Subresource == "":
		return fmt.Sprintf("this is another right than that for the subresource, want %q", given.Subresource)
	}
	return ""
}

// scopeOf returns the scope of the resource of a question. Empty means that it is unknown.
func scopeOf(mapper meta.RESTMapper, q question) meta.RESTScopeName {
	kind, err := mapper.KindFor(schema.GroupVersionResource{Group: q.APIGroup, Resource: q.Resource})
	if err != nil || kind.Group != q.APIGroup {
		return ""
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return ""
	}
	return mapping.Scope.Name()
}

// another is the name of another user, of another namespace and of another object.
const another = "contract-another"

// address has the user, the namespace or the name in which a request differs from another one.
type address struct{ text, user, namespace, name string }

// otherAddresses returns addresses for a request. An object that names its namespace outside of its metadata, too, stays there.
func otherAddresses(request framework.Request, given check.Attributes) []address {
	all := []address{{text: "by another user", user: another}}
	data, err := json.Marshal(given.Object)
	mentions := strings.Count(strings.ToLower(string(data)), fmt.Sprintf("namespace\":%q", given.Namespace))
	if given.Namespace != "" && given.Resource.Resource != "namespaces" && err == nil && mentions <= 1 {
		all = append(all, address{text: "in another namespace", namespace: another})
	}
	if given.Name != "" && request.Name == given.Name {
		all = append(all, address{text: "with another name", name: another})
	}
	return all
}

// sent returns the request of an address.
func (to address) sent(request framework.Request) framework.Request {
	if to.user != "" {
		sender := framework.User{Groups: []string{user.AllAuthenticated}}
		if request.User != nil {
			sender = *request.User
		}
		sender.Name, request.User = to.user, &sender
	}
	request.Namespace, request.Name = cmp.Or(to.namespace, request.Namespace), cmp.Or(to.name, request.Name)
	request.Object, request.InProcess.OldObject = to.moved(request.Object), to.moved(request.InProcess.OldObject)
	return request
}

// moved returns a copy of an object at an address.
func (to address) moved(object runtime.Object) runtime.Object {
	object = check.Copy(object)
	if accessor, err := meta.Accessor(object); err == nil && object != nil {
		accessor.SetNamespace(cmp.Or(to.namespace, accessor.GetNamespace()))
		accessor.SetName(cmp.Or(to.name, accessor.GetName()))
	}
	return object
}

// asked returns the question that belongs to the request of an address.
func (to address) asked(q question, given check.Attributes) question {
	if to.user != "" && q.User.GetName() == given.User.GetName() {
		q.User = &user.DefaultInfo{Name: to.user}
	}
	if to.namespace != "" && q.Namespace == given.Namespace {
		q.Namespace = to.namespace
	}
	if to.name != "" && q.Name == given.Name && q.APIGroup == given.Resource.Group && q.Resource == given.Resource.Resource {
		q.Name = to.name
	}
	return q
}

// compareQuestions sends a request, and then the same to other addresses. A new plugin that asks something else about one of them,
// but not the same as before, decides by more than the authorizer, and is not judged.
func compareQuestions(t *check.T, request framework.Request, given check.Attributes) {
	copies := twins(t.World(), given)
	ask := asking(t, copies...)
	first := ask(request)
	for _, to := range otherAddresses(request, given) {
		then, alone := ask(to.sent(request)), []question(nil)
		for _, q := range first {
			want := said(to.asked(q, given))
			if want == said(q) || isAmong(then, want) {
				continue
			}
			if alone == nil {
				alone = asking(t, copies...)(to.sent(request))
			}
			switch {
			case isAmong(alone, want):
				t.Errorf("%s, then the same %s: the plugin asks the authorizer %q, and then not %q, as a new plugin does", request, to.text, said(q), want)
			case isAmong(alone, said(q)):
				t.Errorf("%s, and the same %s: the plugin asks the authorizer %q for both, want %q", request, to.text, said(q), want)
			}
		}
	}
}

// twins returns copies of the objects of a World that a request can concern: in another namespace, and with another name.
func twins(w *fakes.World, given check.Attributes) (copies []runtime.Object) {
	for _, object := range w.Objects() {
		_, isNamespace := object.(*corev1.Namespace)
		accessor, err := meta.Accessor(object)
		if err != nil {
			continue
		}
		accessor.SetUID("")
		accessor.SetResourceVersion("")
		namespace, name := accessor.GetNamespace(), accessor.GetName()
		if namespace != "" && namespace == given.Namespace {
			copies = append(copies, address{namespace: another}.moved(object))
		}
		if isNamespace && name == given.Namespace || !isNamespace && name == given.Name && namespace == given.Namespace {
			copies = append(copies, address{name: another}.moved(object))
		}
	}
	return copies
}
