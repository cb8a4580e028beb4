package shipped

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/userfile"
)

// maxBytes is the size of the largest file that is read.
const maxBytes = 64 << 20

// maxDocuments is the largest number of documents in a file of manifests.
const maxDocuments = 10_000

// Load reads files and folders. Of a folder it reads the files *.yaml, *.yml and *.json, not the files of
// its subfolders, as kubectl does.
func Load(paths ...string) (*Project, error) {
	p, err := read(paths)
	if err != nil {
		return nil, err
	}
	if err := p.pick(); err != nil {
		return nil, err
	}
	if len(p.Manifests) == 0 && len(paths) > 0 {
		return nil, &scenario.Error{
			File:    strings.Join(paths, ", "),
			Message: "found nothing that decides about requests; expected webhook configurations, policies or CustomResourceDefinitions",
			Hint:    strings.Join(append([]string{"give the output of kustomize build or helm template"}, p.LeftOut()...), "; "),
		}
	}
	return p, nil
}

// Read reads files and folders as Load does, and returns all their objects. Objects need not belong together: a
// binding can name a policy that is in no file. The Project also has what could be read if there is an error.
func Read(paths ...string) (*Project, error) {
	p, err := read(paths)
	p.Manifests, p.rest = p.rest, nil
	return p, errors.Join(err, p.unique())
}

// read reads files and folders.
func read(paths []string) (*Project, error) {
	p := &Project{}
	var errs []error
	var files []string
	for _, path := range paths {
		found, err := filesOf(path)
		files, errs = append(files, found...), append(errs, err)
	}
	for i, file := range files {
		if slices.Contains(files[:i], file) {
			continue
		}
		errs = append(errs, p.readFile(file, !slices.Contains(paths, file)))
	}
	return p, errors.Join(errs...)
}

// filesOf returns a file, or the files of a folder.
func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	tree := userfile.TreeOf(path)
	var files []string
	for _, entry := range entries {
		name := filepath.Join(path, entry.Name())
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			continue
		}
		if err := userfile.InTree(tree, name); err != nil {
			return nil, unreadable(name, err)
		}
		files = append(files, name)
	}
	if len(files) == 0 {
		return nil, &scenario.Error{File: path, Message: "the folder has no files *.yaml, *.yml or *.json; expected manifests", Hint: "subfolders are not read: give each, or the output of kustomize build"}
	}
	return files, nil
}

func unreadable(path string, err error) *scenario.Error {
	var placed *fs.PathError
	if errors.As(err, &placed) {
		err = placed.Err
	}
	return &scenario.Error{File: path, Message: fmt.Sprintf("cannot be read: %v; expected a file of Kubernetes manifests or a folder of them", err), Hint: "check the path"}
}

// readFile adds the objects of a file. In a folder, documents that are not Kubernetes objects are
// left out.
func (p *Project) readFile(name string, inFolder bool) error {
	data, err := userfile.ReadAtMost(name, maxBytes)
	if err != nil {
		return unreadable(name, err)
	}
	all := documents(data)
	if len(all) > maxDocuments {
		return &scenario.Error{
			File: name, Line: all[maxDocuments].line, Column: 1,
			Message: fmt.Sprintf("a file of %d documents; expected at most %d", len(all), maxDocuments), Hint: "split it, or check the path",
		}
	}
	var errs []error
	for _, d := range all {
		m := Manifest{File: name, Line: d.line, text: d.text}
		asJSON, err := yaml.YAMLToJSONStrict(d.text)
		if err == nil {
			err = utiljson.Unmarshal(asJSON, &m.Object)
		}
		if err != nil {
			errs = append(errs, malformed(name, d, err))
			continue
		}
		if m.Object == nil {
			continue // only comments
		}
		if err := p.add(m, inFolder, 0); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// document is one of the documents of a file.
type document struct {
	line int // of the first line, from 1
	text []byte
}

// documents splits a file at its lines "---", as kubectl does.
func documents(data []byte) []document {
	var all []document
	current, line := document{line: 1}, 0
	for text := range bytes.Lines(data) {
		line++
		if rest, is := bytes.CutPrefix(text, []byte("---")); is && len(bytes.TrimSpace(rest)) == 0 {
			all = append(all, current)
			current = document{line: line + 1}
			continue
		}
		current.text = append(current.text, text...)
	}
	return append(all, current)
}

var lineOfError = regexp.MustCompile(`^(?:error converting YAML to JSON: )?(?:yaml: )?(?:line (\d+): )?(.*)$`)

// malformed describes a document that is not a YAML or JSON map.
func malformed(name string, d document, err error) *scenario.Error {
	text, _, _ := strings.Cut(strings.ReplaceAll(err.Error(), "yaml: unmarshal errors:\n  ", ""), "\n")
	problem := &scenario.Error{File: name, Line: d.line, Column: 1, Message: text}
	if found := lineOfError.FindStringSubmatch(text); found != nil {
		problem.Message = found[2]
		if line, err := strconv.Atoi(found[1]); err == nil {
			problem.Line += line - 1
		}
	}
	problem.Message = "not a map in YAML or JSON: " + problem.Message + "; expected a Kubernetes manifest"
	if bytes.Contains(d.text, []byte("{{")) {
		problem.Hint = "templates are not rendered: give the output of helm template"
	}
	return problem
}
