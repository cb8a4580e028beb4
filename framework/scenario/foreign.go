package scenario

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/strictyaml"
)

// ours matches the line of a file that says that it has a scenario, or another document of this package.
var ours = regexp.MustCompile(`(?m)^[\s{]*"?(apiVersion"?:\s*"?admissiontest|kind"?:\s*"?(Scenario|PolicyTest)\b)`)

// foreign returns why a file that was found in a folder is not one of scenarios, or "" if it is meant
// to be one. Documents are those that could be read.
func (f *file) foreign(content []byte, documents []*strictyaml.Node) string {
	if !f.inFolder || ours.Match(content) {
		return ""
	}
	why := "not a Scenario"
	for i, root := range documents {
		apiVersion, kind := root.Text("apiVersion"), root.Text("kind")
		if strings.HasPrefix(apiVersion, "admissiontest") || strings.EqualFold(kind, Kind) || kind == "" && root.Get("spec").Has("when") {
			return ""
		}
		if i == 0 && kind != "" {
			why = fmt.Sprintf("a %s is not a Scenario", kind)
		}
	}
	return why
}

// beginningBytes is how much of a file beginning reads.
const beginningBytes = 64 << 10

// beginning returns the beginning of a file that cannot be read as one of scenarios. It is empty if
// the file cannot be opened.
func (f *file) beginning() []byte {
	info, err := f.stat()
	if err != nil || !info.Mode().IsRegular() {
		return []byte("kind: " + Kind) // not known: an error
	}
	opened, err := f.open()
	if err != nil {
		return []byte("kind: " + Kind)
	}
	defer opened.Close() //nolint:errcheck // the file is only read
	content, _ := io.ReadAll(io.LimitReader(opened, beginningBytes))
	return content
}
