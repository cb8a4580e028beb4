package scenario

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

// filesFolder is the placeholder of the folder of spec.server.files.
const filesFolder = "$(files)"

// inFilesFolder matches a path in that folder. Other characters are not needed, and a file system could take
// two different names with them for the same one.
var inFilesFolder = regexp.MustCompile(`^\$\(files\)(/[A-Za-z0-9._-]*)*$`)

// relativePath matches a path that is relative to that folder, or to that of the file that has it.
var relativePath = regexp.MustCompile(`^[A-Za-z0-9._-][A-Za-z0-9._/-]*$`)

// serverFile is a file of spec.server.files, or one that a step writes.
type serverFile struct {
	name string
	// node is the text.
	node *document.Node
	// inStep is true if placeholders are replaced in the text before it is written.
	inStep bool
	// documents are the documents of the text, and problems what is wrong in it: YAML that is not read in the same
	// way by every parser is none that can be checked.
	documents []*document.Node
	problems  []document.Problem
}

// serverFiles says how kube-apiserver reads the files. Paths are relative to the folder of the files, and in
// lower case, because some file systems ignore the case.
//
// A file that is not known to be data is checked like configuration, also if nothing seems to name it. So a
// path that is not understood here does not prevent the check.
type serverFiles struct {
	*decoder
	configuration, data map[string]bool
	// manifests are folders with webhook configurations and policies.
	manifests []string
	// flagsToo are flags that the operator allows besides those in serverFlags.
	flagsToo []string
}

// checkServers checks what a field server and the steps let kube-apiserver do, which runs as the user of the
// run: it only reads files of the scenario, executes nothing, and connects to nothing but this machine. Allowed is
// as AllowServerFlags of LoadOptions.
func (d *decoder) checkServers(allowed []string) {
	s := &serverFiles{decoder: d, configuration: map[string]bool{}, data: map[string]bool{}, flagsToo: allowed}
	var all []*serverFile
	inServer := false
	for _, set := range d.Set {
		switch set.Struct.(type) {
		case *Server:
			inServer = true
			s.flags(set.Node.Get("flags"), set.At("flags"))
			all = append(all, filesIn(set.Node.Get("files"), false)...)
		case *Files:
			all = append(all, filesIn(set.Node.Get("write"), true)...)
		}
	}
	if inServer {
		s.files(all)
	}
}

// filesIn returns the files in a map of texts by name.
func filesIn(written *document.Node, inStep bool) []*serverFile {
	if written == nil {
		return nil
	}
	var all []*serverFile
	for _, field := range written.Fields {
		all = append(all, &serverFile{name: field.Name, node: field.Value, inStep: inStep})
	}
	return all
}

// files checks the files that kube-apiserver reads.
func (s *serverFiles) files(all []*serverFile) {
	for _, file := range all {
		text, _ := file.node.Plain().(string)
		if file.inStep {
			text = strings.ReplaceAll(text, "$$(", "$(")
		}
		file.documents, file.problems = document.ParseTwice(file.name, []byte(text))
		for _, one := range file.documents {
			eachValue(one, "", func(key string, n *document.Node) { s.refer(file, key, n.Raw) })
		}
	}
	for _, file := range all {
		if s.isConfiguration(file.name) {
			s.file(file)
		}
	}
}

// flags checks the names of the flags and the paths in their values.
func (s *serverFiles) flags(flags *document.Node, where *document.Path) {
	if flags == nil {
		return
	}
	known := serverFlags()
	for _, field := range flags.Fields {
		text, _ := field.Value.Plain().(string)
		kind, ok := known[field.Name]
		switch {
		case !ok && s.allowed(field.Name):
			s.data[fileKey(text)] = true
		case !ok:
			hint := "a test in Go can allow it: AllowServerFlags of conformance.Target"
			if other := document.DidYouMean(field.Name, slices.Sorted(maps.Keys(known))); other != "" {
				hint = other + " Otherwise " + hint
			}
			s.Fail(field.Key,
				fmt.Sprintf("%s has %s; expected only flags that scenarios can set, which docs/scenarios.md lists", where, document.Quote(field.Name)), hint)
		case kind == setting && strings.ContainsFunc(text, unicode.IsControl):
			s.Fail(field.Value, fmt.Sprintf("%s has a control character; expected one line", where.Field(field.Name)), "several values are separated by commas")
		case kind == setting || text == "":
		case !inFilesFolder.MatchString(text) || goesUp(text):
			s.Fail(field.Value, fmt.Sprintf("%s is %s; expected a path below $(files), of letters, digits, dots, dashes and underscores", where.Field(field.Name), document.Quote(text)),
				"write the file in server.files, and its path as $(files)/NAME")
		case kind == configuration:
			s.configuration[fileKey(text)] = true
		default:
			s.data[fileKey(text)] = true
		}
	}
}

// allowed reports whether the operator allows a flag that is not in serverFlags.
func (s *serverFiles) allowed(name string) bool {
	return slices.Contains(s.flagsToo, name) || slices.Contains(s.flagsToo, "*")
}

// refer takes note of a value that names a file or folder which kube-apiserver reads.
func (s *serverFiles) refer(from *serverFile, key, value string) {
	if key == "staticmanifestsdir" {
		s.manifests = append(s.manifests, fileKey(value))
	}
	if key == "path" || key == "kubeconfigfile" {
		s.configuration[fileKey(value)] = true
		s.configuration[fileKey(path.Join(path.Dir(from.name), value))] = true
	}
}

// isConfiguration reports whether a file is to be checked.
func (s *serverFiles) isConfiguration(name string) bool {
	name = fileKey(name)
	return s.configuration[name] || !s.data[name] && !slices.ContainsFunc(s.manifests, func(folder string) bool {
		return folder == "" || strings.HasPrefix(name, folder+"/")
	})
}

// fileKey returns a path relative to the folder of the files, in lower case.
func fileKey(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Clean("/"+strings.TrimPrefix(name, filesFolder)), "/"))
}

// file checks a file that kube-apiserver reads as configuration.
func (s *serverFiles) file(file *serverFile) {
	fail := func(n *document.Node, message, hint string) {
		line, column := file.node.Locate(n.Line, n.Column)
		s.Fail(document.At(file.node.File(), line, column), fmt.Sprintf("the file %s of the API server ", document.Quote(file.name))+message, hint)
	}
	for _, problem := range file.problems {
		fail(problem.At, "cannot be checked: "+problem.Message, problem.Hint)
	}
	if text, _ := file.node.Plain().(string); file.inStep {
		for _, name := range placeholdersIn(text) {
			if strings.HasPrefix(name, "steps.") {
				fail(document.At("", 1, 1), fmt.Sprintf("has the placeholder $(%s), and is read as configuration; expected text that is known before the run", name), "")
			}
		}
	}
	for _, one := range file.documents {
		eachValue(one, "", func(key string, n *document.Node) {
			for _, field := range n.Fields {
				if strings.EqualFold(field.Name, "exec") || strings.EqualFold(field.Name, "auth-provider") {
					fail(field.Key, fmt.Sprintf("has %s, which executes a command or other code; expected none in the files of a scenario", document.Quote(field.Name)), "give the user a token instead")
				}
			}
			switch {
			case isAddress(key) && !onThisMachine(n.Raw):
				fail(n, fmt.Sprintf("has the address %s in %s; expected one on this machine", document.Quote(n.Raw), key), "use a loopback address, such as https://127.0.0.1:$(hooks.port)")
			case !isAddress(key) && leaves(key, n.Raw):
				fail(n, fmt.Sprintf("has the path %s in %s; expected one below $(files), of letters, digits, dots, dashes and underscores", document.Quote(n.Raw), document.Quote(key)),
					"write the file in server.files, and its path as $(files)/NAME")
			}
		})
	}
}

// eachValue calls a function for a value and each value in it, with its key in lower case. Items of a list have the
// key of the list. Only scalars have a Raw.
func eachValue(n *document.Node, key string, do func(key string, n *document.Node)) {
	do(key, n)
	for _, item := range n.Items {
		eachValue(item, key, do)
	}
	for _, field := range n.Fields {
		eachValue(field.Value, strings.ToLower(field.Name), do)
	}
}

// isAddress reports whether a field of a configuration has the address of a server.
func isAddress(key string) bool {
	return slices.Contains([]string{"server", "proxy-url", "url", "discoveryurl"}, key)
}

// onThisMachine reports whether an address is a loopback address. It reads an address without a scheme as
// clients of Kubernetes do.
func onThisMachine(address string) bool {
	if address == "" {
		return true
	}
	address = strings.NewReplacer("$(hooks.port)", "1", "$(id)", "id").Replace(address)
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		if parsed, err = url.Parse("https://" + address); err != nil {
			return false
		}
	}
	host := parsed.Hostname()
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// leaves reports whether a value is a path that can be outside of the folder of the files, which is also the
// working directory of kube-apiserver.
func leaves(key, value string) bool {
	switch {
	case value == "":
		return false
	case strings.HasPrefix(value, filesFolder):
		return !inFilesFolder.MatchString(value) || goesUp(value)
	case slices.Contains([]string{"path", "kubeconfigfile", "staticmanifestsdir", "udsname"}, key):
		return !relativePath.MatchString(value) || goesUp(value)
	}
	return strings.HasPrefix(value, "/") || strings.HasPrefix(value, "unix:") || strings.HasPrefix(value, "file:") || goesUp(value)
}

// goesUp reports whether a path has "..".
func goesUp(name string) bool { return slices.Contains(strings.Split(name, "/"), "..") }
