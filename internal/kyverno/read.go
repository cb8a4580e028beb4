package kyverno

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/internal/userfile"
)

// test is a kyverno-test.yaml, as far as it is converted.
type test struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Policies        []string `json:"policies"`
	Resources       []string `json:"resources"`
	TargetResources []string `json:"targetResources"`
	ParamResources  []string `json:"paramResources"`
	Variables       string   `json:"variables"`
	UserInfo        string   `json:"userinfo"`
	Exceptions      []string `json:"exceptions"`
	Results         []result `json:"results"`
}

type result struct {
	Policy           string   `json:"policy"`
	Kind             string   `json:"kind"`
	Resource         string   `json:"resource"`
	Resources        []string `json:"resources"`
	PatchedResource  string   `json:"patchedResource"`
	PatchedResources string   `json:"patchedResources"`
	Result           string   `json:"result"`
	Validating       bool     `json:"isValidatingAdmissionPolicy"`
	Mutating         bool     `json:"isMutatingAdmissionPolicy"`
}

// values is the file of variables.
type values struct {
	NamespaceSelector []struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"namespaceSelector"`
}

// userInfo is the file of the user.
type userInfo struct {
	UserInfo struct {
		Username string              `json:"username"`
		UID      string              `json:"uid"`
		Groups   []string            `json:"groups"`
		Extra    map[string][]string `json:"extra"`
	} `json:"userInfo"`
}

// manifest is an object of a file.
type manifest struct {
	file   string
	fields map[string]any
}

func (m manifest) text(path ...string) string {
	var value any = m.fields
	for _, key := range path {
		mapping, _ := value.(map[string]any)
		value = mapping[key]
	}
	text, _ := value.(string)
	return text
}

func (m manifest) kind() string      { return m.text("kind") }
func (m manifest) name() string      { return m.text("metadata", "name") }
func (m manifest) namespace() string { return m.text("metadata", "namespace") }

// isPolicy reports whether a manifest is of one of the kinds that are converted.
func (m manifest) isPolicy() bool {
	return slices.Contains([]string{"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"}, m.kind())
}

// isBinding reports whether a manifest binds such a policy.
func (m manifest) isBinding() bool {
	return slices.Contains([]string{"ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"}, m.kind())
}

// read returns the content of a file. Its name is relative to a folder, and it is in the tree of that folder.
func read(folder, name string) ([]byte, error) {
	name = filepath.Join(folder, filepath.FromSlash(name))
	if err := userfile.InTree(userfile.TreeOf(folder), name); err != nil {
		return nil, err
	}
	return userfile.Read(name)
}

// readAs reads a YAML file into a struct.
func readAs(folder, name string, into any) error {
	content, err := read(folder, name)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(folder, name), err)
	}
	return nil
}

// readManifests reads the objects of files. The names are relative to a folder.
func readManifests(folder string, names []string) ([]manifest, error) {
	var out []manifest
	for _, name := range names {
		content, err := read(folder, name)
		if err != nil {
			return nil, err
		}
		reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
		for {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", filepath.Join(folder, name), err)
			}
			var fields map[string]any
			if err := yaml.Unmarshal(document, &fields); err != nil {
				return nil, fmt.Errorf("%s: %w", filepath.Join(folder, name), err)
			}
			if len(fields) > 0 {
				out = append(out, manifest{name, fields})
			}
		}
	}
	return out, nil
}
