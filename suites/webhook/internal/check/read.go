package check

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	objects "github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/userfile"
)

// read returns the objects of a manifest. The items of a List are objects of their own.
func (m Manifest) read() ([]map[string]any, error) {
	if m.File != "" {
		project, err := shipped.Read(m.File)
		if err == nil && len(project.Manifests) == 0 {
			err = fmt.Errorf("%s has no object; want a Kubernetes object", m.File)
		}
		if err != nil {
			return nil, err
		}
		return project.Objects(), nil
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
