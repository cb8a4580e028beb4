package apiserver

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	baseversion "k8s.io/component-base/version"
)

// discover responds to requests that are not about a resource: discovery, OpenAPI and the version.
func (r *Request) discover() (reply, error) {
	parts := strings.Split(strings.Trim(r.Call.Path, "/"), "/")
	switch {
	case r.Call.Verb != "get":
		return r.unknownPath(), nil
	case r.Call.Path == "/version":
		major, minor, _ := strings.Cut(baseversion.DefaultKubeBinaryVersion, ".")
		return jsonReply(http.StatusOK, version.Info{Major: major, Minor: minor, GitVersion: "v" + baseversion.DefaultKubeBinaryVersion + ".0"})
	case len(parts) == 1 && slices.Contains([]string{"healthz", "livez", "readyz"}, parts[0]):
		return reply{code: http.StatusOK, body: []byte("ok")}, nil
	case len(parts) >= 2 && parts[0] == "openapi" && parts[1] == "v3":
		return r.openapi(parts)
	case len(parts) == 1 && parts[0] == "api":
		return jsonReply(http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}})
	case len(parts) == 1 && parts[0] == "apis":
		return jsonReply(http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: r.groups()})
	case len(parts) == 2 && parts[0] == "api":
		return r.resources(schema.GroupVersion{Version: parts[1]})
	case len(parts) == 3 && parts[0] == "apis":
		return r.resources(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	case len(parts) == 2 && parts[0] == "apis":
		for _, group := range r.groups() {
			if group.Name == parts[1] {
				group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
				return jsonReply(http.StatusOK, group)
			}
		}
	}
	return r.unknownPath(), nil
}

func (r *Request) unknownPath() reply {
	return statusReply(metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "a World has no resource at " + r.Call.Path,
	})
}

// groups returns the API groups that have resources, without the core group.
func (r *Request) groups() []metav1.APIGroup {
	var groups []metav1.APIGroup
	for _, gv := range r.server.Kinds.Versions() {
		if gv.Group == "" || len(r.server.Kinds.Served(gv)) == 0 {
			continue
		}
		version := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		if n := len(groups); n > 0 && groups[n-1].Name == gv.Group {
			groups[n-1].Versions = append(groups[n-1].Versions, version)
			continue
		}
		groups = append(groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
	}
	return groups
}

func (r *Request) resources(gv schema.GroupVersion) (reply, error) {
	list := r.server.Kinds.Discovery(gv)
	if len(list.APIResources) == 0 {
		return r.unknownPath(), nil
	}
	return jsonReply(http.StatusOK, list)
}
