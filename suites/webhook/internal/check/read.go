package check

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	objects "github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/userfile"
)

// read returns the objects of a manifest. The items of a List are objects of their own.
func (m Manifest) read() ([]map[string]any, error) {
	if m.File != "" {
		return readFile(m.File)
	}
	if objects.IsNil(m.Object) {
		return nil, errors.New("it has no object: set Object or File")
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m.Object)
	if err != nil {
		return nil, fmt.Errorf("convert %T: %w", m.Object, err)
	}
	if _, err := objects.Kind(fields); err != nil {
		kinds, _, unknown := scheme.Scheme.ObjectKinds(m.Object)
		if unknown != nil {
			return nil, fmt.Errorf("%T: %w", m.Object, err)
		}
		fields["apiVersion"], fields["kind"] = kinds[0].GroupVersion().String(), kinds[0].Kind
	}
	return []map[string]any{fields}, nil
}

func readFile(name string) ([]map[string]any, error) {
	data, err := userfile.Read(name)
	if err != nil {
		return nil, err
	}
	var all []map[string]any
	for i, document := range bytes.Split(append([]byte("\n"), data...), []byte("\n---")) {
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		encoded, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", name, i+1, err)
		}
		if string(encoded) == "null" {
			continue
		}
		var fields map[string]any
		if err := utiljson.Unmarshal(encoded, &fields); err != nil {
			return nil, fmt.Errorf("%s: document %d is not an object; want a Kubernetes object", name, i+1)
		}
		if _, err := objects.Kind(fields); err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", name, i+1, err)
		}
		items, isList := fields["items"].([]any)
		if kind, _ := fields["kind"].(string); !isList || !strings.HasSuffix(kind, "List") {
			all = append(all, fields)
			continue
		}
		for _, item := range items {
			if item, ok := item.(map[string]any); ok {
				all = append(all, item)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no object; want a Kubernetes object", name)
	}
	return all, nil
}

// one returns the only object of a manifest.
func (m Manifest) one() (map[string]any, error) {
	all, err := m.read()
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%s has %d objects; want one", m.name(), len(all))
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// fix returns the Fix of a sample as JSON, or that of the file beside it.
func (s Sample) fix() ([]byte, error) {
	text := []byte(s.Fix)
	if len(text) == 0 && s.File != "" {
		name := strings.TrimSuffix(strings.TrimSuffix(s.File, ".yaml"), ".yml") + ".fix.yaml"
		data, err := userfile.Read(name)
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		text = data
	}
	if len(text) == 0 {
		return nil, nil
	}
	fix, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("read the Fix of %s: %w", s.name(), err)
	}
	return fix, nil
}
