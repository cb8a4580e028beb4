package check_test

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
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

// TestLog: what is logged with klog during a check is in its Outcome and not on stderr. After
// the check, and while klog is configured by the process, it is as before.
func TestLog(t *testing.T) {
	logging := func(text string) rule.Outcome {
		return check.NewT(check.Subject{}).Run(check.Rule{Check: func(*check.T) { klog.Error(text) }}, time.Minute)
	}
	stderr := onStderr(t, func() {
		if got := logging("during the check"); !strings.HasSuffix(got.Log, "] during the check") || strings.Contains(got.Log, "\n") {
			t.Errorf("log is %q, want one line that ends with: during the check", got.Log)
		}
		klog.Error("after the check")
	})
	if strings.Contains(stderr, "during the check") || !strings.Contains(stderr, "after the check") {
		t.Errorf("stderr is %q, want only what was logged after the check", stderr)
	}
	var own bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&own)
	defer klog.LogToStderr(true)
	onStderr(t, func() {
		if got := logging("to the process"); got.Log != "" {
			t.Errorf("log is %q, want none: the process has configured klog", got.Log)
		}
	})
	if !strings.Contains(own.String(), "to the process") {
		t.Errorf("klog of the process got %q, want the line of the check", own.String())
	}
}

// onStderr returns what f writes to stderr.
func onStderr(t *testing.T, f func()) string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stderr
	os.Stderr = write
	defer func() { os.Stderr = before }()
	f()
	os.Stderr = before
	_ = write.Close()
	text, err := io.ReadAll(read)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestLongLog: an Outcome has the end of a long log.
func TestLongLog(t *testing.T) {
	got := check.NewT(check.Subject{}).Run(check.Rule{Check: func(*check.T) {
		for n := range 25 {
			klog.Infof("line %d", n)
		}
	}}, time.Minute)
	lines := strings.Split(got.Log, "\n")
	if len(lines) != 21 || lines[0] != "(5 earlier lines)" || !strings.HasSuffix(lines[20], "line 24") {
		t.Errorf("got %d lines: %q, want the last 20 and how many came before", len(lines), lines)
	}
}
