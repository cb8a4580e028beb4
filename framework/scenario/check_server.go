package scenario

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

// serverFlags returns the flags of kube-apiserver that a scenario can set. Each is here because of what scenarios test.
// No other flag is needed for that, and many of the others read or write files of the user, open ports, or send
// credentials elsewhere.
func serverFlags() []string {
	return []string{
		// Which admission plugins run, and their configuration.
		"admission-control", "admission-control-config-file", "disable-admission-plugins", "enable-admission-plugins",
		"default-not-ready-toleration-seconds", "default-unreachable-toleration-seconds",
		// What the API server serves: kinds and fields that are not on by default, and validation of pods.
		"allow-privileged", "emulated-version", "emulation-forward-compatible", "feature-gates",
		"runtime-config", "runtime-config-emulation-forward-compatible",
		// Who the user of a request is: policies and webhooks see it.
		"anonymous-auth", "authentication-config", "authentication-token-webhook-cache-ttl",
		"authentication-token-webhook-config-file", "authentication-token-webhook-version", "token-auth-file",
		// What a user may do: admission comes after it, and the variable authorizer of CEL asks it.
		"authorization-config", "authorization-mode", "authorization-policy-file",
		"authorization-webhook-cache-authorized-ttl", "authorization-webhook-cache-unauthorized-ttl",
		"authorization-webhook-config-file", "authorization-webhook-version",
		// Audit annotations of policies and webhooks.
		"audit-policy-file", "audit-webhook-config-file", "audit-webhook-mode", "audit-webhook-version",
		// How the API server calls webhooks, how long, and how many requests are admitted at once.
		"egress-selector-config-file", "enable-priority-and-fairness", "max-mutating-requests-inflight",
		"max-requests-inflight", "request-timeout",
		// What the log says, which spec.server.fails compares.
		"v", "vmodule",
	}
}

// namesFile reports whether the value of a flag is the path of a file.
func namesFile(flag string) bool {
	return strings.HasSuffix(flag, "-file") || flag == "authentication-config" || flag == "authorization-config"
}

// namesData reports whether that file is one of tokens or ABAC policies, which can name no other file, command or address.
func namesData(flag string) bool {
	return flag == "token-auth-file" || flag == "authorization-policy-file"
}

// inFilesFolder matches a path in the folder of spec.server.files. Other characters are not needed, and a file system
// could take two different names with them for the same one.
var inFilesFolder = regexp.MustCompile(`^\$\(files\)(/[A-Za-z0-9._-]*)*$`)

// relativePath matches a path that is relative to that folder, which is the working directory of kube-apiserver.
var relativePath = regexp.MustCompile(`^[A-Za-z0-9._-][A-Za-z0-9._/-]*$`)

// checkServers checks what a field server and the steps let kube-apiserver do, which runs as the user of the
// run: it only reads files of the scenario, executes nothing, and connects to nothing but this machine. Every file is
// checked, whatever reads it, but for tokens and ABAC policies, which only their flags can name. Allowed is as
// AllowServerFlags of LoadOptions.
func (d *decoder) checkServers(allowed []string) {
	for _, set := range d.Set {
		var files *document.Node
		switch set.Struct.(type) {
		case *Server:
			d.serverFlags(set.Get("flags"), set.At("flags"), allowed)
			files = set.Get("files")
		case *Files:
			files = set.Get("write")
		}
		for _, field := range files.Entries() {
			if !isData(field.Name) {
				// A step replaces placeholders.
				d.serverFile(field.Name, strings.ReplaceAll(field.Value.Raw, "$$(", "$("), field.Value)
			}
		}
	}
}

// serverFlags checks the names of the flags and the paths in their values.
func (d *decoder) serverFlags(flags *document.Node, where document.Path, allowed []string) {
	known := serverFlags()
	for _, field := range flags.Entries() {
		text, here := field.Value.Raw, where.Field(field.Name)
		isPath := namesFile(field.Name) && text != ""
		switch {
		case !slices.Contains(known, field.Name):
			if !slices.Contains(allowed, field.Name) && !slices.Contains(allowed, "*") {
				d.Fail(field.Key, fmt.Sprintf("%s has %s; expected only flags that scenarios can set, which docs/scenarios.md lists, or that AllowServerFlags of conformance.Target allows", where, document.Quote(field.Name)),
					document.DidYouMean(field.Name, known))
			}
		case strings.ContainsFunc(text, unicode.IsControl):
			d.Fail(field.Value, fmt.Sprintf("%s has a control character; expected one line", here), "several values are separated by commas")
		case isPath && (!inFilesFolder.MatchString(text) || goesUp(text)):
			d.Fail(field.Value, fmt.Sprintf("%s is %s; expected a path below $(files), of letters, digits, dots, dashes and underscores", here, document.Quote(text)),
				"write the file in server.files, and its path as $(files)/NAME")
		case isPath && namesData(field.Name) != isData(text):
			d.Fail(field.Value, fmt.Sprintf("%s is %s; expected a name that ends with .csv or .jsonl for tokens and ABAC policies, and for nothing else", here, document.Quote(text)), "rename the file")
		}
	}
}

// isData reports whether a file is one of tokens or ABAC policies, by its name.
func isData(name string) bool {
	return slices.Contains([]string{".csv", ".jsonl"}, strings.ToLower(path.Ext(name)))
}

// serverFile checks a file that kube-apiserver can read as configuration. YAML that is not read in the same way by every
// parser is none that can be checked.
func (d *decoder) serverFile(name, text string, node *document.Node) {
	fail := func(n *document.Node, message, hint string) {
		line, column := node.Locate(n.Line, n.Column)
		d.Fail(document.At(node.File(), line, column), fmt.Sprintf("the file %s of the API server ", document.Quote(name))+message, hint)
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
			switch isAddress := slices.Contains([]string{"server", "proxy-url", "url", "discoveryurl"}, key); {
			case isAddress && !onThisMachine(n.Raw):
				fail(n, fmt.Sprintf("has the address %s in %s; expected one on this machine", document.Quote(n.Raw), key), "use a loopback address, such as https://127.0.0.1:$(hooks.port)")
			case !isAddress && leaves(key, n.Raw):
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

// onThisMachine reports whether an address is a loopback address. It reads an address without a scheme as
// clients of Kubernetes do.
func onThisMachine(address string) bool {
	address = strings.NewReplacer("$(hooks.port)", "1", "$(id)", "id").Replace(address)
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		parsed, err = url.Parse("https://" + address)
	}
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(parsed.Hostname())
	return address == "" || parsed.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// leaves reports whether a value is a path that can be outside of the folder of the files.
func leaves(key, value string) bool {
	isPath := slices.Contains([]string{"path", "kubeconfigfile", "staticmanifestsdir", "udsname"}, key)
	switch {
	case value == "":
		return false
	case strings.HasPrefix(value, "$(files)"):
		return !inFilesFolder.MatchString(value) || goesUp(value) || isPath && isData(value)
	case isPath:
		return !relativePath.MatchString(value) || goesUp(value) || isData(value)
	}
	return strings.HasPrefix(value, "/") || strings.HasPrefix(value, "unix:") || strings.HasPrefix(value, "file:") || goesUp(value)
}

// goesUp reports whether a path has "..".
func goesUp(name string) bool { return slices.Contains(strings.Split(name, "/"), "..") }

// FailsMatcher returns a function that reports whether the log of a server has what
// Server.Fails says: a string, or a regular expression between slashes. The error is not nil
// if the expression does not compile.
func FailsMatcher(fails string) (func(log string) bool, error) {
	if len(fails) > 1 && strings.HasPrefix(fails, "/") && strings.HasSuffix(fails, "/") {
		expression, err := regexp.Compile(fails[1 : len(fails)-1])
		if err != nil {
			return nil, fmt.Errorf("compile the regular expression: %w", err)
		}
		return expression.MatchString, nil
	}
	return func(log string) bool { return strings.Contains(log, fails) }, nil
}
