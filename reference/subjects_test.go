package reference

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane" // installs the internal types
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// file is testdata/subjects/PLUGIN.yaml: a plugin of kube-apiserver, what the contract suite tests it with, and the rules
// that it breaks.
type file struct {
	Waivers []waiver `json:"waivers"`
	// These are fields of contract.Subject. In their values, $(webhook) is the URL of a webhook, and $(kubeconfig) a
	// file with the address of a reviewer of images.
	AnnotationPrefix string   `json:"annotationPrefix"`
	Subresources     []string `json:"subresources"`
	Enforced         []string `json:"enforced"`
	Config           string   `json:"config"`
	ValidConfigs     []string `json:"validConfigs"`
	InvalidConfigs   []string `json:"invalidConfigs"`
	ConfigRequired   bool     `json:"configRequired"`
	// Gates are feature gates to inject. Rights are what an authorizer to inject grants, each with user, verb and resource.
	Gates  []string    `json:"gates"`
	Rights [][3]string `json:"rights"`
	// World are the manifests of the fake cluster, Objects the manifests of requests, by name.
	World   []json.RawMessage          `json:"world"`
	Objects map[string]json.RawMessage `json:"objects"`
	Allow   []sample                   `json:"allow"`
	Reject  []sample                   `json:"reject"`
}

// sample is a request. One of its first fields names an object, which is changed by the merge patch With first.
type sample struct {
	Create           string `json:"create"`
	CreateOnUpdate   string `json:"createOnUpdate"`
	Update           string `json:"update"` // the stored object
	Delete           string `json:"delete"`
	DeleteCollection string `json:"deleteCollection"`
	Connect          string `json:"connect"`

	With        json.RawMessage `json:"with"`
	Change      json.RawMessage `json:"change"`  // the merge patch of an update
	Options     json.RawMessage `json:"options"` // of a connect
	Subresource string          `json:"subresource"`
	Of          string          `json:"of"` // the object with the subresource, if the body is another one
	OfWith      json.RawMessage `json:"ofWith"`
	Namespace   string          `json:"namespace"`
	As          string          `json:"as"`
	Groups      []string        `json:"groups"`
}

// reader makes objects of manifests.
type reader struct {
	*testing.T
	file
}

// subjectOf reads the file of a plugin.
func subjectOf(t *testing.T, name string) (contract.Subject, []waiver) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "subjects", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for placeholder, value := range map[string]func(*testing.T) string{"$(webhook)": webhookServer, "$(kubeconfig)": imageReviewer} {
		if strings.Contains(string(text), placeholder) {
			text = []byte(strings.ReplaceAll(string(text), placeholder, value(t)))
		}
	}
	r := reader{T: t}
	if err := yaml.UnmarshalStrict(text, &r.file); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var world []runtime.Object
	for _, manifest := range r.World {
		world = append(world, r.decode(manifest))
	}
	subject := contract.Subject{
		Source: fromKubernetes(name), Scheme: legacyscheme.Scheme, World: []fakes.Option{fakes.WithObjects(world...)},
		AnnotationPrefix: r.AnnotationPrefix, Subresources: r.Subresources, Enforced: r.Enforced, Config: r.Config,
		Configs: contract.Configs{Valid: r.ValidConfigs, Invalid: r.InvalidConfigs, Required: r.ConfigRequired},
		Inject:  r.inject(),
	}
	for _, one := range r.Allow {
		subject.Allow = append(subject.Allow, r.request(one))
	}
	for _, one := range r.Reject {
		subject.Reject = append(subject.Reject, r.request(one))
	}
	return subject, r.Waivers
}

// inject returns the injections of gates and rights.
func (r reader) inject() func(*fakes.World) []fakes.Injector {
	var all []fakes.Injector
	if r.Gates != nil {
		gates := map[featuregate.Feature]bool{}
		for _, name := range r.Gates {
			gates[featuregate.Feature(name)] = true
		}
		all = append(all, fakes.InjectFeatureGates(fakes.Gates(gates)))
	}
	if r.Rights != nil {
		authorizer := fakes.Deny()
		for _, right := range r.Rights {
			authorizer = authorizer.Unless(right[0], right[1], right[2])
		}
		all = append(all, fakes.InjectAuthorizer(authorizer))
	}
	if all == nil {
		return nil
	}
	return func(*fakes.World) []fakes.Injector { return all }
}

// decode makes an object of a manifest, of the type of its version, without defaults.
func (r reader) decode(manifest []byte) runtime.Object {
	r.Helper()
	codecs := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict)
	object, _, err := codecs.UniversalDeserializer().Decode(manifest, nil, nil)
	if err != nil {
		r.Fatalf("%v in %s", err, manifest)
	}
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return object
}

// internal makes an object of the internal type, as kube-apiserver passes it to plugins.
func (r reader) internal(manifest []byte) runtime.Object {
	r.Helper()
	object, err := legacyscheme.Scheme.ConvertToVersion(r.decode(manifest), runtime.InternalGroupVersioner)
	if err != nil {
		r.Fatalf("%v in %s", err, manifest)
	}
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return object
}

// object returns the manifest of an object with a name, changed by merge patches.
func (r reader) object(name string, patches ...json.RawMessage) []byte {
	r.Helper()
	manifest, found := r.Objects[name]
	if !found {
		r.Fatalf("no object has the name %q", name)
	}
	for _, patch := range patches {
		if patch == nil {
			continue
		}
		var err error
		if manifest, err = jsonpatch.MergePatch(manifest, patch); err != nil {
			r.Fatalf("%v in %s", err, patch)
		}
	}
	return manifest
}

func (r reader) request(s sample) framework.Request {
	r.Helper()
	name := s.Create + s.CreateOnUpdate + s.Update + s.Delete + s.DeleteCollection + s.Connect
	object := r.internal(r.object(name, s.With))
	var request framework.Request
	switch name {
	case s.Create:
		request = framework.Create(object)
	case s.CreateOnUpdate:
		request = framework.CreateOnUpdate(object)
	case s.Update:
		request = framework.Update(object, r.internal(r.object(name, s.With, s.Change)))
	case s.Delete:
		request = framework.Delete(object)
	case s.DeleteCollection:
		request = framework.DeleteCollection(object)
	case s.Connect:
		request = framework.Connect(object, s.Subresource, r.internal(s.Options))
	default:
		r.Fatalf("want one verb of %+v", s)
	}
	switch {
	case s.Of != "":
		request = request.WithSubresource(s.Subresource, r.internal(r.object(s.Of, s.OfWith)))
	case s.Subresource != "":
		request = request.WithSubresource(s.Subresource)
	}
	if s.Namespace != "" {
		request = request.InNamespace(s.Namespace)
	}
	if s.As != "" {
		request = request.As(s.As, s.Groups...)
	}
	return request
}
