package hook_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework/hook"
)

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		name  string
		reply hook.Reply
		want  string // the whole error; empty for none
	}{
		{"zero", hook.Reply{}, ""},
		{"fault", hook.Reply{Fault: hook.Slow, HTTP: &hook.HTTP{Code: 500}}, ""},
		{"fault of the connection", hook.Reply{Fault: hook.Refused}, ""},
		{"barrier", hook.Reply{Barrier: "b", BarrierSize: 2, Delay: 1}, ""},
		{"header removed", hook.Reply{HTTP: &hook.HTTP{Header: map[string]string{"Date": ""}}}, ""},
		{"misspelt fault", hook.Reply{Fault: "tls-expire"}, `fault: unknown fault "tls-expire"; did you mean "tls-expired"?`},
		{
			"fault unlike any", hook.Reply{Fault: "zzz"},
			`fault: unknown fault "zzz", want one of http-404, http-500, redirect, refused, reset, hang, slow, empty, not-json, no-response, ` +
				`wrong-uid, wrong-kind, wrong-version, patch-without-type, unknown-patch-type, malformed-patch, inapplicable-patch, oversize, ` +
				`tls-wrong-ca, tls-expired, tls-wrong-name, tls-hang`,
		},
		{
			"fault of the connection with more", hook.Reply{Fault: hook.Refused, Warnings: []string{"w"}},
			`warnings: has no effect with fault "refused", which prevents every call; remove it`,
		},
		{
			"no answer to change", hook.Reply{Fault: hook.Reset, HTTP: &hook.HTTP{Code: 500}},
			`http: has no effect with fault "reset", which sends no answer; remove it`,
		},
		{"negative delay", hook.Reply{Delay: -1}, `delay: got -1ns, want 0 or more`},
		{"barrier without size", hook.Reply{Barrier: "b"}, `barrier: got the name "b" and barrierSize 0, want a name and the number of calls that wait there, 2 or more`},
		{"size without barrier", hook.Reply{BarrierSize: 2}, `barrier: got the name "" and barrierSize 2, want a name and the number of calls that wait there, 2 or more`},
		{"informational code", hook.Reply{HTTP: &hook.HTTP{Code: 101}}, `http.code: got 101, want a final status code, 200 to 999`},
		{"code too large", hook.Reply{HTTP: &hook.HTTP{Code: 1000}}, `http.code: got 1000, want a final status code, 200 to 999`},
		{"header name", hook.Reply{HTTP: &hook.HTTP{Header: map[string]string{"a b": "c"}}}, `http.header: "a b": "c" is not a header`},
		{
			"header value", hook.Reply{HTTP: &hook.HTTP{Header: map[string]string{"A": "b\r\nc"}}},
			`http.header: "A": "b\r\nc" is not a header`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := test.want
			if want != "" {
				want = "check script: reply 1: " + want
			}
			got := ""
			if err := (hook.Script{Replies: []hook.Reply{test.reply}}).Validate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestValidateNamesEachReply(t *testing.T) {
	err := hook.Script{Replies: []hook.Reply{{Delay: -1}, {Fault: hook.TLSExpired}}}.Validate()
	for _, want := range []string{
		"reply 1: delay",
		`reply 2: fault: "tls-expired" applies to every call of a hook, so it must be in the only reply; the script has 2 replies`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
