package reference

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/openapi"
)

// schooledPolicy is the plugin MutatingAdmissionPolicy on an API server that describes
// pods, which a World does not, when it has read that. Until then it answers 503: see docs/findings.md.
type schooledPolicy struct {
	*mutating.Plugin
	pods *podDescription
}

func schooled(config io.Reader) (admission.Interface, error) {
	plugin, err := mutating.NewPlugin(config)
	if err != nil {
		return nil, err
	}
	return &schooledPolicy{plugin, &podDescription{read: make(chan struct{})}}, nil
}

// SetExternalKubeClientSet gives the plugin a client whose server describes pods.
func (p *schooledPolicy) SetExternalKubeClientSet(client kubernetes.Interface) {
	p.Plugin.SetExternalKubeClientSet(describedClient{client, p.pods})
}

// ValidateInitialization starts the plugin, and waits until it has read the descriptions.
func (p *schooledPolicy) ValidateInitialization() error {
	if err := p.Plugin.ValidateInitialization(); err != nil || !p.pods.asked {
		return err
	}
	<-p.pods.read
	return nil
}

// describedClient is a client whose server describes pods.
type describedClient struct {
	kubernetes.Interface
	pods *podDescription
}

// Discovery returns one with descriptions.
func (c describedClient) Discovery() discovery.DiscoveryInterfaces {
	return describedDiscovery{c.Interface.Discovery(), c.pods}
}

type describedDiscovery struct {
	discovery.DiscoveryInterfaces
	pods *podDescription
}

// OpenAPIV3 returns the descriptions.
func (d describedDiscovery) OpenAPIV3() openapi.Client {
	d.pods.asked = true
	return d.pods
}

// podDescription is the little of a pod's OpenAPI that policies here need.
type podDescription struct {
	// asked is whether the plugin has it, read whether it has read its paths a moment ago.
	asked bool
	read  chan struct{}
	once  sync.Once
}

// Paths implements openapi.Client.
func (d *podDescription) Paths() (map[string]openapi.GroupVersion, error) {
	d.once.Do(func() { go d.announce() })
	return map[string]openapi.GroupVersion{"api/v1": d}, nil
}

// announce closes read after a moment in which the plugin could run. One timer of 20 ms is not
// enough: a busy machine may not run the process at all in that time.
func (d *podDescription) announce() {
	for range 20 {
		time.Sleep(time.Millisecond)
	}
	close(d.read)
}

// ServerRelativeURL implements openapi.GroupVersion.
func (*podDescription) ServerRelativeURL() string { return "/openapi/v3/api/v1?hash=1" }

// Schema implements openapi.GroupVersion.
func (*podDescription) Schema(string) ([]byte, error) {
	type object map[string]any
	anything := object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	texts := object{"type": "object", "additionalProperties": object{"type": "string"}}
	described := func(kind string) object {
		return object{
			"type": "object", "x-kubernetes-group-version-kind": []object{{"group": "", "version": "v1", "kind": kind}},
			"x-kubernetes-preserve-unknown-fields": true,
			"properties": object{
				"apiVersion": object{"type": "string"}, "kind": object{"type": "string"},
				"metadata": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": object{"labels": texts}},
				"spec":     anything, "status": anything,
			},
		}
	}
	return json.Marshal(object{"openapi": "3.0.0", "components": object{"schemas": object{"Pod": described("Pod"), "PodExecOptions": described("PodExecOptions")}}})
}
