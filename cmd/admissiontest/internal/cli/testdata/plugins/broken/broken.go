// Package broken has plugins with seeded faults. Each plugin only acts on objects with a label of
// the plugin's name.
package broken

import (
	"context"
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"
)

// Register registers the plugins.
func Register(plugins *admission.Plugins) {
	for name, act := range map[string]func(labels map[string]string){
		"Grows":  func(labels map[string]string) { labels["Grows"] += "x" }, // a fault: Admit is not idempotent
		"Panics": func(map[string]string) { panic("oh no") },
	} {
		plugins.Register(name, func(config io.Reader) (admission.Interface, error) {
			if config != nil {
				return nil, errors.New(name + " wants no configuration")
			}
			return &plugin{admission.NewHandler(admission.Create), name, act}, nil
		})
	}
}

type plugin struct {
	*admission.Handler
	name string
	act  func(labels map[string]string)
}

// Admit acts on objects with the label.
func (p *plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	object, err := meta.Accessor(a.GetObject())
	if err != nil || object.GetLabels()[p.name] == "" {
		return nil
	}
	labels := object.GetLabels()
	p.act(labels)
	object.SetLabels(labels)
	return nil
}
