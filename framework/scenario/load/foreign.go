package load

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/files"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
)

// ours matches the line of a file that says that it has a scenario, or another document of package
// scenario.
var ours = regexp.MustCompile(`(?m)^[\s{]*"?(apiVersion"?:\s*"?admissiontest|kind"?:\s*"?(Scenario|PolicyTest)\b)`)

// foreign returns why a file that was found in a folder is not one of scenarios, or "" if it is meant
// to be one. Documents are those that could be read.
func foreign(f *files.File, content []byte, documents []*strictyaml.Node) string {
	if !f.InFolder || ours.Match(content) {
		return ""
	}
	why := "not a Scenario"
	for i, root := range documents {
		apiVersion, kind := root.Text("apiVersion"), root.Text("kind")
		if strings.HasPrefix(apiVersion, "admissiontest") || strings.EqualFold(kind, scenario.Kind) || kind == "" && root.Get("spec").Has("when") {
			return ""
		}
		if i == 0 && kind != "" {
			why = fmt.Sprintf("a %s is not a Scenario", kind)
		}
	}
	return why
}
