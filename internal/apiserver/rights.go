package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
)

// ErrRightsMissing marks rights that are missing for a run.
var ErrRightsMissing = errors.New("rights are missing")

// Right is one action that a user must be allowed to do.
type Right = client.Right

// Need is what one scenario is going to send.
type Need struct {
	// Who names the scenario, for messages.
	Who string
	// Requests are the requests. A Namespace that is empty or contains a placeholder is
	// created by the run.
	Requests []framework.Request
	// Metrics is true if the feature gates or the admission plugins of the API server must
	// be known.
	Metrics bool
}

// Rights returns the rights that CheckRights checks, and the first scenario that needs each, on an API server with the
// kinds of Kubernetes only. The name of a right that every run needs is empty.
func Rights(needs []Need) map[Right]string { return wanted(client.BuiltIn(), needs) }

// CheckRights finds out whether the user of a configuration has the rights that a run
// needs: for installing, waiting and removing, and for the requests of its scenarios. What a request needs besides the
// right to send it, such as those in a Role that it creates, is not checked: the API server refuses the request, and
// says why. The error is an ErrRightsMissing that names each missing right and who needs it.
// Nothing is created. It sends one review for an administrator, and one more for each right that the first
// does not grant. If the API server does not answer reviews, no right counts as missing.
func CheckRights(ctx context.Context, config *rest.Config, needs []Need) error {
	c, err := client.New(config)
	if err != nil {
		return err
	}
	defer c.Close()
	less, err := c.Missing(ctx, []Right{{Verb: "*", Group: "*", Resource: "*"}, {Verb: "*", Path: "*"}})
	if err != nil || len(less) == 0 {
		return err
	}
	if err := c.Discover(ctx); err != nil {
		return err
	}
	return require(ctx, c, wanted(c.Resources, needs))
}

// RequireRights is CheckRights for some rights.
func RequireRights(ctx context.Context, config *rest.Config, needed []Right) error {
	c, err := client.New(config)
	if err != nil {
		return err
	}
	defer c.Close()
	who := map[Right]string{}
	for _, right := range needed {
		who[right] = ""
	}
	return require(ctx, c, who)
}

func require(ctx context.Context, c *client.Client, who map[Right]string) error {
	missing, err := c.Missing(ctx, slices.SortedFunc(maps.Keys(who), func(a, b Right) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.String(), b.String()))
	}))
	if err != nil || len(missing) == 0 {
		return err
	}
	texts := make([]string, len(missing))
	for i, right := range missing {
		texts[i] = right.String()
		if name := who[right]; name != "" {
			texts[i] += " (" + name + ")"
		}
	}
	return fmt.Errorf("user %s: %w: %s; nothing was created; \"admissiontest rbac\" prints the roles that a run needs, and --skip leaves out the scenarios that need these",
		cmp.Or(c.UserName(ctx), "of the kubeconfig"), ErrRightsMissing, strings.Join(texts, ", "))
}

// collector collects rights, and the first scenario that needs each: "" for the run itself.
type collector struct {
	resources *client.Resources
	rights    map[Right]string
}

// wanted returns all rights that are needed, and by whom. It adds the CustomResourceDefinitions of the needs to the
// resources.
func wanted(resources *client.Resources, needs []Need) map[Right]string {
	c := collector{resources: resources, rights: map[Right]string{}}
	c.addRun()
	for _, need := range needs {
		for _, request := range need.Requests {
			if object, ok := request.Object.(runtime.Unstructured); ok && request.Kind.Kind == "CustomResourceDefinition" {
				resources.AddCRD(object.UnstructuredContent())
			}
		}
	}
	for _, need := range needs {
		if need.Metrics {
			c.addRight(need.Who, Right{Verb: "get", Path: "/metrics"})
		}
		for _, request := range need.Requests {
			c.addRequest(need.Who, request)
		}
	}
	return c.rights
}

func (c collector) add(who, group, resource string, verbs ...string) {
	for _, verb := range verbs {
		c.addRight(who, Right{Verb: verb, Group: group, Resource: resource})
	}
}

func (c collector) addRight(who string, right Right) {
	if _, known := c.rights[right]; !known {
		c.rights[right] = who
	}
}

// addRun adds what every run does: create and remove namespaces, fence, and find aggregated and other API servers.
func (c collector) addRun() {
	c.add("", "", "namespaces", "create", "get", "list", "update", "patch", "delete")
	c.addRight("", Right{Verb: "update", Resource: "namespaces", Subresource: "finalize"})
	c.add("", "", "configmaps", managed(true)...)
	c.add("", install.AdmissionGroup, "mutatingwebhookconfigurations", managed(true)...)
	c.add("", install.AdmissionGroup, "validatingwebhookconfigurations", managed(true)...)
	if services, err := c.resources.Of(client.APIServices()); err == nil {
		c.add("", services.Group, services.Resource, "list")
	}
	c.addRight("", Right{Verb: "list", Group: "discovery.k8s.io", Resource: "endpointslices", Namespace: "default"})
}

// managed returns the verbs that it takes to create objects of a resource, and, if the API server stores them, to
// change them, find them again and remove them.
func managed(stored bool) []string {
	if !stored {
		return []string{"create"}
	}
	return []string{"create", "get", "list", "update", "patch", "delete", "deletecollection"}
}

// addRequest adds what it takes to send one request. A user or group with a placeholder in its name can be any. See
// https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/
func (c collector) addRequest(who string, request framework.Request) {
	res, err := c.resources.Of(request.Kind)
	if err != nil {
		return // the outcome of the scenario says that the kind is not served
	}
	if request.User == nil {
		c.addRight(who, Right{Verb: verbOf(request), Group: res.Group, Resource: res.Resource, Subresource: request.Subresource})
	} else {
		names := map[string][]string{"users": {request.User.Name}, "groups": request.User.Groups}
		for resource, all := range names {
			for _, name := range all {
				if strings.Contains(name, "$(") {
					name = ""
				}
				c.addRight(who, Right{Verb: "impersonate", Resource: resource, Name: name})
			}
		}
	}
	if request.Verb != framework.VerbGet && request.Verb != framework.VerbList && res.Resource != "namespaces" && request.Subresource == "" {
		c.add(who, res.Group, res.Resource, managed(res.Deletable)...)
	}
}

// verbOf returns the verb of a request as authorizers see it. See
// https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb
func verbOf(request framework.Request) string {
	switch request.Verb {
	case framework.VerbApply:
		return "patch"
	case framework.VerbConnect:
		return map[string]string{
			http.MethodGet: "get", http.MethodHead: "get", http.MethodPut: "update", http.MethodPatch: "patch",
			http.MethodDelete: "delete", "": "create", http.MethodPost: "create", // OPTIONS has no verb
		}[request.HTTP.Method]
	default:
		return string(request.Verb)
	}
}
