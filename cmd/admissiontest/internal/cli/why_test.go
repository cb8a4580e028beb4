package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/doctor"
)

func TestWhy(t *testing.T) {
	dir := write(t, map[string]string{
		"pod.yaml":    "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: guard-system, labels: {app: web}}\nspec: {containers: [{name: c, image: x}]}\n",
		"two.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n",
		"other.yaml":  "apiVersion: other.example.com/v1\nkind: Thing\nmetadata: {name: a}\n",
		"widget.yaml": "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n",
	})
	configurations := "--configurations=" + doctorFile("cf-block-1", "bad.yaml")
	for name, test := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"it is called":        {[]string{dir + "/pod.yaml", configurations}, exitPass, []string{"CREATE pods web in guard-system by admin", "NamespaceLifecycle", "ValidatingAdmissionWebhook\n    called", `webhook "guard.example.com": it is called`}},
		"not for a delete":    {[]string{dir + "/pod.yaml", configurations, "--operation", "delete", "--as", "jane"}, exitPass, []string{"DELETE pods web in guard-system by jane", "none", "operations CREATE"}},
		"a subresource":       {[]string{dir + "/pod.yaml", configurations, "--subresource", "exec"}, exitPass, []string{"CONNECT pods/exec", "it is not called"}},
		"a custom resource":   {[]string{dir + "/widget.yaml", configurations}, exitPass, []string{"CREATE widgets a in default", "it is not called"}},
		"an unknown kind":     {[]string{dir + "/other.yaml", configurations}, exitUsage, []string{"other.example.com/v1 Thing", "CustomResourceDefinition"}},
		"no such subresource": {[]string{dir + "/pod.yaml", configurations, "--subresource", "scale"}, exitUsage, []string{"there are", "exec"}},
		"impossible":          {[]string{dir + "/pod.yaml", configurations, "--subresource", "exec", "--operation", "CREATE"}, exitUsage, []string{"there are no such requests"}},
		"two objects":         {[]string{dir + "/two.yaml", configurations}, exitUsage, []string{"has 2 objects"}},
		"nothing to ask":      {[]string{dir + "/pod.yaml"}, exitUsage, []string{"--configurations"}},
		"misspelt operation":  {[]string{dir + "/pod.yaml", configurations, "--operation", "CREAT"}, exitUsage, []string{`did you mean "CREATE"?`}},
		"no file":             {nil, exitUsage, []string{"want one file"}},
		"old of a create":     {[]string{dir + "/pod.yaml", configurations, "--old", "x"}, exitUsage, []string{"--old needs --operation UPDATE"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t.Context(), nil, append([]string{"why"}, test.args...)...)
			got.check(t, test.code)
			for _, say := range test.says {
				if !strings.Contains(got.stdout+got.stderr, say) {
					t.Errorf("the output lacks %q:\n%s%s", say, got.stdout, got.stderr)
				}
			}
		})
	}
	got := execute(t.Context(), nil, "why", dir+"/pod.yaml", configurations, "-o", "json")
	var document doctor.Answer
	if err := json.Unmarshal([]byte(got.stdout), &document); err != nil || document.Kind != "Why" || len(document.Steps) != 1 || document.Steps[0].Effect != "called" {
		t.Errorf("got %+v, %v", document, err)
	}
}
