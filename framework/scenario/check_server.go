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

// checkServers checks what a field server and the steps let kube-apiserver do, which runs as the user of the
// run: it only reads files of the scenario, executes nothing, and connects to nothing but this machine. Every file is
// checked, whatever reads it, but for tokens and ABAC policies, which only their flags can name. Allowed is as
// AllowServerFlags of LoadOptions.
func (d *decoder) checkServers(allowed []string) {
	inServer := false
	for _, set := range d.Set {
		switch set.Struct.(type) {
		case *Server:
			inServer = true
			d.serverFlags(set.Node.Get("flags"), set.At("flags"), allowed)
			d.serverFiles(set.Node.Get("files"), false)
		case *Files:
			if inServer {
				d.serverFiles(set.Node.Get("write"), true)
			}
		}
	}
}

// serverFlags checks the names of the flags and the paths in their values.
func (d *decoder) serverFlags(flags *document.Node, where *document.Path, allowed []string) {
	if flags == nil {
		return
	}
	known := serverFlags()
	for _, field := range flags.Fields {
		text, _ := field.Value.Plain().(string)
		kind, ok := known[field.Name]
		switch {
		case !ok && (slices.Contains(allowed, field.Name) || slices.Contains(allowed, "*")):
		case !ok:
			hint := "a test in Go can allow it: AllowServerFlags of conformance.Target"
			if other := document.DidYouMean(field.Name, slices.Sorted(maps.Keys(known))); other != "" {
				hint = other + " Otherwise " + hint
			}
			d.Fail(field.Key,
				fmt.Sprintf("%s has %s; expected only flags that scenarios can set, which docs/scenarios.md lists", where, document.Quote(field.Name)), hint)
		case kind == setting && strings.ContainsFunc(text, unicode.IsControl):
			d.Fail(field.Value, fmt.Sprintf("%s has a control character; expected one line", where.Field(field.Name)), "several values are separated by commas")
		case kind == setting || text == "":
		case !inFilesFolder.MatchString(text) || goesUp(text):
			d.Fail(field.Value, fmt.Sprintf("%s is %s; expected a path below $(files), of letters, digits, dots, dashes and underscores", where.Field(field.Name), document.Quote(text)),
				"write the file in server.files, and its path as $(files)/NAME")
		case (kind == data) != isData(text):
			d.Fail(field.Value, fmt.Sprintf("%s is %s; expected a name that ends with .csv or .jsonl for tokens and ABAC policies, and for nothing else", where.Field(field.Name), document.Quote(text)), "rename the file")
		}
	}
}

// isData reports whether a file is one of tokens or ABAC policies, by its name.
func isData(name string) bool {
	return slices.Contains([]string{".csv", ".jsonl"}, strings.ToLower(path.Ext(name)))
}

// serverFiles checks the files in a map of texts by name. Files of a step have placeholders.
func (d *decoder) serverFiles(written *document.Node, inStep bool) {
	if written == nil {
		return
	}
	for _, field := range written.Fields {
		if !isData(field.Name) {
			d.serverFile(field.Name, field.Value, inStep)
		}
	}
}

// serverFile checks a file that kube-apiserver can read as configuration. YAML that is not read in the same way by every
// parser is none that can be checked.
func (d *decoder) serverFile(name string, node *document.Node, inStep bool) {
	fail := func(n *document.Node, message, hint string) {
		line, column := node.Locate(n.Line, n.Column)
		d.Fail(document.At(node.File(), line, column), fmt.Sprintf("the file %s of the API server ", document.Quote(name))+message, hint)
	}
	text, _ := node.Plain().(string)
	if inStep {
		for _, name := range placeholdersIn(text) {
			if strings.HasPrefix(name, "steps.") {
				fail(document.At("", 1, 1), fmt.Sprintf("has the placeholder $(%s); expected text that is known before the run", name), "")
			}
		}
		text = strings.ReplaceAll(text, "$$(", "$(")
	}
	documents, problems := document.ParseTwice(name, []byte(text))
	for _, problem := range problems {
		fail(problem.At, "cannot be checked: "+problem.Message, problem.Hint)
	}
	for _, one := range documents {
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
				fail(n, fmt.Sprintf("has the path %s in %s; expected one below $(files), of letters, digits, dots, dashes and underscores, that does not end with .csv or .jsonl", document.Quote(n.Raw), document.Quote(key)),
					"write the file in server.files, and its path as $(files)/NAME")
			}
		})
	}
}

// eachValue calls a function for a value and each value in it, with its key in lower case. Items of a list have the
// key of the list. Only scalars have a Raw. It leaves out what only webhooks and audit policies have: kube-apiserver
// calls the one, and compares the other with requests.
func eachValue(n *document.Node, key string, do func(key string, n *document.Node)) {
	do(key, n)
	for _, item := range n.Items {
		eachValue(item, key, do)
	}
	for _, field := range n.Fields {
		if field.Name != "clientConfig" && field.Name != "nonResourceURLs" {
			eachValue(field.Value, strings.ToLower(field.Name), do)
		}
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
	case (key == "path" || key == "kubeconfigfile") && isData(value):
		return true
	case strings.HasPrefix(value, filesFolder):
		return !inFilesFolder.MatchString(value) || goesUp(value)
	case slices.Contains([]string{"path", "kubeconfigfile", "staticmanifestsdir", "udsname"}, key):
		return !relativePath.MatchString(value) || goesUp(value)
	}
	return strings.HasPrefix(value, "/") || strings.HasPrefix(value, "unix:") || strings.HasPrefix(value, "file:") || goesUp(value)
}

// goesUp reports whether a path has "..".
func goesUp(name string) bool { return slices.Contains(strings.Split(name, "/"), "..") }
