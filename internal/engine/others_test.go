package engine

import (
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/judge"
	"github.com/admissiontest/admissiontest/internal/target"
)

// sharedTarget is a Target with other clients.
type sharedTarget struct{ fakeTarget }

func (sharedTarget) Optional() target.Optional {
	return target.Optional{Confined: func(string, framework.Request) error { return nil }}
}

// A refusal by a policy or webhook of another client is no verdict; one of the scenario is.
func TestRefusedByOthers(t *testing.T) {
	t.Parallel()
	c := caseOn(nil)
	c.target = sharedTarget{}
	c.id = "at-0123456789-00001"
	c.given = []map[string]any{{"webhooks": []any{map[string]any{"name": "own.example.com"}}}}
	for message, want := range map[string]string{
		`configmaps "a" is forbidden: ValidatingAdmissionPolicy 'theirs' with binding 'b' denied request: no`:                        "a policy of another client refused the request: theirs",
		`configmaps "a" is forbidden: ValidatingAdmissionPolicy 'at-0123456789-00002-p' with binding 'b' denied request: no`:         "a policy of another client refused the request: at-0123456789-00002-p",
		`configmaps "a" is forbidden: ValidatingAdmissionPolicy 'at-0123456789-00001-p' with binding 'b' denied request: no`:         "",
		`admission webhook "theirs.example.com" denied the request: no`:                                                              "a webhook of another client refused the request: theirs.example.com",
		`admission webhook "own.example.com" denied the request: no`:                                                                 "",
		`failed calling webhook "theirs.example.com": no`:                                                                            "",
		`admission webhook "own.example.com" denied the request: admission webhook "theirs.example.com" denied the request: wrapped`: "",
	} {
		failed := &failure{result: response(403, message), mismatches: []judge.Mismatch{{Path: "code"}}}
		if got := c.nothingAboutAdmission(failed); got != want {
			t.Errorf("%s: got %q, want %q", message, got, want)
		}
	}
	wrong := &failure{result: response(403, `admission webhook "theirs.example.com" denied the request`), mismatches: []judge.Mismatch{{Path: "message"}}}
	if got := caseOn(nil).nothingAboutAdmission(wrong); got != "" {
		t.Errorf("without other clients: got %q, want nothing: the API server names a wrong webhook", got)
	}
	if got := c.nothingAboutAdmission(&failure{result: response(403, `admission webhook "theirs.example.com" denied the request`)}); got != "" {
		t.Errorf("without a mismatch: got %q, want nothing", got)
	}
}
