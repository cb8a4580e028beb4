// Package check prepares a Subject of the webhook suite, sends AdmissionReviews to its webhooks, and applies their
// answers. The rules are in package rules.
package check

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
)

// Kind is whether a webhook mutates.
type Kind string

// The kinds of webhooks.
const (
	Mutating   Kind = "mutating"
	Validating Kind = "validating"
)

// Subject describes the webhooks to check. Set Handler or URL.
type Subject struct {
	// Name is the name of the Subject in messages. Empty means the name of the test.
	Name string
	// Handler serves the webhooks. The suite calls it in this process, with the path of clientConfig.
	Handler http.Handler
	// URL is the address of the webhooks: "https://127.0.0.1:9443". If it has a path, every webhook is called with it.
	URL string
	// CA has PEM certificates that verify the certificate of the URL. Empty means the system's.
	CA []byte
	// ServerName is the name that the certificate of the URL must have: "guard.example-system.svc". Empty means the host
	// of the URL.
	ServerName string
	// Replicas are addresses of other replicas of the program at URL, with the same CA and ServerName. Empty means that
	// there are none.
	Replicas []string
	// Process is the command of a program that serves the webhooks on this machine over HTTPS, for rules that start and
	// end it. In its arguments, {port} is replaced with a free port, and {cert-dir} with a folder that has tls.crt and
	// tls.key. Empty means that there is none. Handler or URL is still required.
	Process []string
	// Configurations has the webhook configurations; the CustomResourceDefinitions of samples; and Namespaces, whose labels
	// matter for a namespaceSelector. Other objects are ignored. Without a webhook configuration, Kind says what the
	// one webhook is.
	Configurations []Manifest
	// Kind is the kind of webhook if there is no configuration. Empty means unknown.
	Kind Kind
	// Allow has objects that the webhooks must allow. Reject has objects that one of them must deny.
	Allow, Reject []Sample
	// Untouched has objects that the webhooks must not change. They are also in Allow.
	Untouched []Sample
	// Volatile are JSON pointers of fields that intentionally differ in each answer, such as
	// "/metadata/annotations/example.com~1time". A * is any key or index.
	Volatile []string
	// NameSensitive is why the webhooks judge names. Empty means that they do not.
	NameSensitive string
	// Egress is why the webhooks connect to addresses that are in objects. Empty means that they do not.
	Egress string
	// Effects returns what the webhooks have done to other systems, in a form that can be compared with
	// reflect.DeepEqual. Nil means that it is not known: WH-DRY-2 is inconclusive for a Handler, and unsupported for a URL.
	Effects func() any
	// Stall makes what the webhooks wait for, such as another system, not answer until resume is called. Nil means that
	// they wait for nothing.
	Stall func() (resume func())
	// APIServer is where the configurations are installed. The zero value means that they are on none.
	APIServer APIServer
}

// Manifest is a Kubernetes object, or a file with objects. Set one of the fields.
type Manifest struct {
	// File is a YAML or JSON file with one or more objects.
	File string
	// Object is an object. A typed object needs no apiVersion and kind if it is one of Kubernetes' own.
	Object runtime.Object
}

// Sample is an object, and what the webhooks must do with it. Set File or Object.
type Sample struct {
	Manifest
	// Operation is CREATE, UPDATE, DELETE or CONNECT. Empty means CREATE. For UPDATE and DELETE, the object is stored.
	Operation string
	// Subresource is the subresource of the request. Empty means none.
	Subresource string
	// Old is the old object of an UPDATE. Empty means the object itself.
	Old Manifest
	// Versions has the same object in other versions of its kind. Empty means that there are none, or that the versions differ only
	// in their apiVersion.
	Versions []Manifest
	// User sends the request. The zero value means an administrator of a namespace.
	User framework.User
	// Message is a part of the message of the denial. Empty means that it is not checked.
	Message string
	// Fix is a JSON patch, in JSON or YAML, that removes the reason of the denial. The fixed object must be allowed.
	// Empty means that it is not checked.
	Fix string
}

// Files returns a Manifest for each file that matches one of the patterns of path/filepath.Glob. A pattern that
// matches nothing is a file that cannot be read, which is reported.
func Files(patterns ...string) []Manifest {
	var all []Manifest
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			names = []string{pattern}
		}
		for _, name := range names {
			all = append(all, Manifest{File: name})
		}
	}
	return all
}

// name returns a name of the manifest for messages.
func (m Manifest) name() string {
	if m.File != "" {
		return m.File
	}
	return fmt.Sprintf("%T", m.Object)
}

// SampleFiles is Files for samples, with one object in each file. A file NAME.fix.yaml is the Fix of NAME.yaml.
func SampleFiles(patterns ...string) []Sample {
	var all []Sample
	for _, each := range Files(patterns...) {
		if !strings.HasSuffix(each.File, ".fix.yaml") {
			all = append(all, Sample{Manifest: each})
		}
	}
	return slices.Clip(all)
}
