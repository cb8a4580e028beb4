package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/admissiontest/admissiontest/internal/userfile"
)

// Manifests are objects in YAML or JSON. Files and Text make them. The zero value has none.
type Manifests struct {
	paths []string
	text  string
}

// Files are the objects of files, and of the files below folders that end in .yaml, .yml or .json.
func Files(paths ...string) Manifests { return Manifests{paths: paths} }

// Text are the objects of a string in YAML or JSON.
func Text(text string) Manifests { return Manifests{text: text} }

func (m Manifests) isZero() bool { return m.paths == nil && m.text == "" }

// objects returns the decoded objects. The items of a List are taken out of it.
func (m Manifests) objects() ([]map[string]any, error) {
	all, err := decode("the text", m.text)
	errs := []error{err}
	for _, path := range m.paths {
		names := []string{path}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			if names, err = below(path); err != nil {
				errs = append(errs, err)
			}
			if len(names) == 0 {
				errs = append(errs, fmt.Errorf("%s has no file that ends in .yaml, .yml or .json", path))
			}
		}
		for _, name := range names {
			text, err := userfile.Read(name)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			found, err := decode(name, string(text))
			all, errs = append(all, found...), append(errs, err)
		}
	}
	return all, errors.Join(errs...)
}

// below returns the files with manifests below a folder.
func below(folder string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			names = append(names, path)
		}
		return err
	})
	return names, err
}

// decode returns the objects of a string. The error names the document, from 1.
func decode(name, text string) ([]map[string]any, error) {
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), len(text)+1)
	var all []map[string]any
	for i := 1; ; i++ {
		var raw json.RawMessage
		err := documents.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err == nil && (len(raw) == 0 || string(raw) == "null") {
			continue
		}
		u := &unstructured.Unstructured{}
		if err == nil {
			err = u.UnmarshalJSON(raw)
		}
		if err == nil && u.IsList() {
			err = u.EachListItem(func(item runtime.Object) error {
				if one, ok := item.(*unstructured.Unstructured); ok {
					all = append(all, one.Object)
				}
				return nil
			})
		} else if err == nil {
			all = append(all, u.Object)
		}
		if err != nil {
			return all, fmt.Errorf("%s, document %d: %w", name, i, err)
		}
	}
}
