package check_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// TestFold: failures that differ only in the request are one line. Only the first line has
// details.
func TestFold(t *testing.T) {
	create := func(name string) framework.Request {
		return framework.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	}
	subject := check.Subject{Allow: []framework.Request{create("a"), create("ab"), create("c")}}
	got := check.NewT(subject).Run(check.Rule{Check: func(t *check.T) {
		for _, request := range t.Requests() {
			t.Errorf("%s: Admit changed it\n- was %s\n+ is", request, request)
		}
		t.Errorf("%s: Admit refused it\nsecond details", subject.Allow[0])
		t.Errorf("of no request")
		t.Errorf("of no request")
		for _, log := range []string{"one\ndetail", "two", "three", "four", "five"} {
			t.LogOnce(log)
		}
	}}, time.Minute)
	want := strings.Join([]string{
		"create Pod default/a: Admit changed it (also create Pod default/ab and 1 more)",
		"create Pod default/a: Admit refused it",
		"of no request (2 times)",
		"details of the first line:",
		"- was create Pod default/a",
		"+ is",
		"one", "two", "three", "and 2 more notes",
	}, "\n")
	if got.Reason != want {
		t.Errorf("got:\n%s\nwant:\n%s", got.Reason, want)
	}
}
