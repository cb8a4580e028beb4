package kyverno

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// text returns the PolicyTest.
func (c *converter) text(file string, cases []oneCase) (string, error) {
	var out strings.Builder
	line := func(format string, arguments ...any) { fmt.Fprintf(&out, format+"\n", arguments...) }
	line("# From %s of kyverno's CLI.", filepath.Base(file))
	line("apiVersion: admissiontest.dev/v1alpha1")
	line("kind: PolicyTest")
	line("policies: %s", list(c.policyFiles()))
	if len(c.ParamResources) > 0 {
		line("params: %s", list(c.paths(c.ParamResources)))
	}
	labels, err := c.namespaces()
	if err != nil {
		return "", err
	}
	if len(labels) > 0 {
		line("namespaces: %s", flow(labels))
	}
	if alpha := c.alphaVersions(); len(alpha) > 0 {
		line("server: {flags: {runtime-config: %s}}", scalar(strings.Join(alpha, ",")))
	}
	user, err := c.user()
	if err != nil {
		return "", err
	}
	line("cases:")
	for _, one := range cases {
		var objects []string
		for _, object := range one.objects {
			objects = append(objects, c.reference(object, c.objects))
		}
		what := objects[0]
		if len(objects) > 1 {
			what = "[" + strings.Join(objects, ", ") + "]"
		}
		fields := append([]string{"object: " + what}, one.fields...)
		if user != "" {
			fields = append(fields, "as: "+user)
		}
		remark := ""
		if one.remark != "" {
			remark = " # " + one.remark
		}
		line("- {%s}%s", strings.Join(fields, ", "), remark)
	}
	return out.String(), nil
}

// path returns a path relative to the folder of the PolicyTest.
func (c *converter) path(name string) string {
	return path.Join(filepath.ToSlash(c.prefix), name)
}

func (c *converter) paths(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = scalar(c.path(name))
	}
	return out
}

// policyFiles returns the files with policies and bindings that are converted. Of a file with
// other kinds only these manifests are named.
func (c *converter) policyFiles() []string {
	var out []string
	for _, file := range c.Policies {
		var names []string
		others := 0
		for _, one := range c.policies {
			switch {
			case one.file != file:
			case one.isPolicy() || one.isBinding():
				names = append(names, scalar(c.path(file)+"#"+one.kind()+"/"+one.name()))
			default:
				others++
				c.leaveOut("%s %s of %s: not a ValidatingAdmissionPolicy or MutatingAdmissionPolicy", one.kind(), one.name(), file)
			}
		}
		if others > 0 {
			out = append(out, names...)
		} else if len(names) > 0 {
			out = append(out, scalar(c.path(file)))
		}
	}
	return out
}

// alphaVersions returns what --runtime-config turns on: the versions of MutatingAdmissionPolicies
// that API servers do not serve by default.
func (c *converter) alphaVersions() []string {
	var out []string
	for _, one := range c.policies {
		version := one.text("apiVersion")
		if strings.HasPrefix(one.kind(), "MutatingAdmissionPolicy") && path.Base(version) != "v1" {
			if flag := version + "=true"; !slices.Contains(out, flag) {
				out = append(out, flag)
			}
		}
	}
	return out
}

// namespaces returns the labels of namespaces, by name.
func (c *converter) namespaces() (map[string]any, error) {
	if c.Variables == "" {
		return nil, nil
	}
	var read values
	if err := readAs(c.folder, c.Variables, &read); err != nil {
		return nil, fmt.Errorf("read variables: %w", err)
	}
	out := map[string]any{}
	for _, one := range read.NamespaceSelector {
		labels := map[string]any{}
		for key, value := range one.Labels {
			labels[key] = value
		}
		out[one.Name] = labels
	}
	return out, nil
}

// user returns the user of all requests, in YAML, or "".
func (c *converter) user() (string, error) {
	if c.UserInfo == "" {
		return "", nil
	}
	var read userInfo
	if err := readAs(c.folder, c.UserInfo, &read); err != nil {
		return "", fmt.Errorf("read userinfo: %w", err)
	}
	user := map[string]any{"name": read.UserInfo.Username}
	if len(read.UserInfo.Groups) > 0 {
		user["groups"] = read.UserInfo.Groups
	}
	if read.UserInfo.UID != "" {
		user["uid"] = read.UserInfo.UID
	}
	if len(read.UserInfo.Extra) > 0 {
		user["extra"] = read.UserInfo.Extra
	}
	return flow(user), nil
}

// reference returns how a PolicyTest refers to an object of a file: FILE, FILE#NAME,
// FILE#KIND/NAME, or the whole manifest. All are the objects of all files.
func (c *converter) reference(o manifest, all []manifest) string {
	inFile, sameName, sameKind := 0, 0, 0
	for _, other := range all {
		if other.file != o.file {
			continue
		}
		inFile++
		if other.name() == o.name() {
			sameName++
			if other.kind() == o.kind() {
				sameKind++
			}
		}
	}
	file := c.path(o.file)
	switch {
	case inFile == 1:
		return scalar(file)
	case sameName == 1:
		return scalar(file + "#" + o.name())
	case sameKind == 1:
		return scalar(file + "#" + o.kind() + "/" + o.name())
	default:
		return flow(o.fields)
	}
}

func list(items []string) string {
	if len(items) == 1 {
		return items[0]
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// plain matches texts that every YAML parser reads as a string without quotes.
var plain = regexp.MustCompile(`^[A-Za-z./_][A-Za-z0-9./_#=-]*[A-Za-z0-9]$`)

// scalar returns a string in YAML.
func scalar(text string) string {
	switch strings.ToLower(text) {
	case "true", "false", "null", "yes", "no", "on", "off", ".inf", ".nan":
		return fmt.Sprintf("%q", text)
	}
	if plain.MatchString(text) {
		return text
	}
	quoted, _ := json.Marshal(text) // a string always has one
	return string(quoted)
}

// flow returns a value in YAML's flow style.
func flow(value any) string {
	switch value := value.(type) {
	case string:
		return scalar(value)
	case []string:
		items := make([]string, len(value))
		for i, item := range value {
			items[i] = scalar(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case []any:
		items := make([]string, len(value))
		for i, item := range value {
			items[i] = flow(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string][]string:
		fields := make([]string, 0, len(value))
		for _, key := range sortedKeys(value) {
			fields = append(fields, scalar(key)+": "+flow(value[key]))
		}
		return "{" + strings.Join(fields, ", ") + "}"
	case map[string]any:
		fields := make([]string, 0, len(value))
		for _, key := range sortedKeys(value) {
			fields = append(fields, scalar(key)+": "+flow(value[key]))
		}
		return "{" + strings.Join(fields, ", ") + "}"
	default:
		text, _ := json.Marshal(value) // numbers, booleans and null are the same in YAML
		return string(text)
	}
}
