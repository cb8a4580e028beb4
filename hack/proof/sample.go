package main

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// part is a part of the code that is changed.
type part struct {
	name string
	// files has prefixes of the names of files.
	files []string
}

const (
	admission = "k8s.io/apiserver/pkg/admission/"
	handlers  = "k8s.io/apiserver/pkg/endpoints/handlers/"

	kubernetesPlugins = "k8s.io/kubernetes/plugin/pkg/admission/"
)

// parts returns the parts of the code that are changed, in the order of the document. A file
// belongs to the first part with a matching prefix.
func parts() []part {
	return []part{
		{"webhook plugins", []string{admission + "plugin/webhook/"}},
		{"policy plugins", []string{admission + "plugin/policy/", admission + "plugin/cel/"}},
		{"quota", []string{admission + "plugin/resourcequota/"}},
		{"namespace lifecycle", []string{admission + "plugin/namespace/"}},
		{"admission core", []string{admission}},
		{"handlers of requests", []string{handlers + "create.go", handlers + "update.go", handlers + "patch.go", handlers + "delete.go", handlers + "rest.go"}},
		{"pod security", []string{podSecurity + "/", kubernetesPlugins + "security/"}},
		{"nodes", []string{kubernetesPlugins + "noderestriction/", kubernetesPlugins + "nodetaint/", kubernetesPlugins + "nodedeclaredfeatures/"}},
		{"other plugins of Kubernetes", []string{kubernetesPlugins}},
	}
}

// partOf returns the name of the part that has a file, or "".
func partOf(file string) string {
	for _, p := range parts() {
		if slices.ContainsFunc(p.files, func(beginning string) bool { return strings.HasPrefix(file, beginning) }) {
			return p.name
		}
	}
	return ""
}

// sample returns all mutants in the order in which they are judged. Path returns the path of a file.
func (o options) sample(path func(file string) (string, error)) ([]mutant, error) {
	ran, err := o.ran()
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, file := range slices.Sorted(maps.Keys(ran)) {
		source, err := path(file)
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		made, err := mutants(file, text, func(p position) bool {
			return slices.ContainsFunc(ran[file], func(b block) bool { return !p.before(b.Start) && p.before(b.End) })
		})
		if err != nil {
			return nil, fmt.Errorf("make mutants of %s: %w", file, err)
		}
		all = append(all, made...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no mutant of %q: no statement of these files ran in %s", o.files, o.profile)
	}
	shuffle(all, o.seed)
	return all, nil
}

// shuffle puts mutants into a random order that depends only on the seed and the mutants. If there
// are more or fewer mutants, because scenarios run other statements, the order of the remaining
// mutants does not change.
func shuffle(all []mutant, seed uint64) {
	order := map[string]string{}
	for _, m := range all {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, m.id()))
		order[m.id()] = string(sum[:])
	}
	slices.SortFunc(all, func(a, b mutant) int { return strings.Compare(order[a.id()], order[b.id()]) })
}

// among reports whether a file begins with one of the beginnings of the flag.
func (o options) among(file string) bool {
	return slices.ContainsFunc(strings.Split(o.files, ","), func(beginning string) bool { return strings.HasPrefix(file, beginning) })
}

// ran returns the blocks of statements that ran, by file.
func (o options) ran() (map[string][]block, error) {
	file, err := os.Open(o.profile)
	if err != nil {
		return nil, fmt.Errorf("%w: make coverage writes it", err)
	}
	defer func() { _ = file.Close() }() // read only
	all, err := parseProfile(file)
	if err != nil {
		return nil, err
	}
	ran := map[string][]block{}
	for block, did := range all {
		name := path.Base(block.File)
		if did && partOf(block.File) != "" && o.among(block.File) && !strings.HasPrefix(name, "zz_generated") {
			ran[block.File] = append(ran[block.File], block)
		}
	}
	return ran, nil
}
