package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

const guardedSource = `package p

func (p *plugin) Validate(x any) error {
	if !p.WaitForReady() {
		return errors.New("ready") // ready
	}
	pod, ok := x.(*Pod)
	if !ok {
		return errors.New("type") // type
	}
	if _, ok := x.(*Node); !ok {
		return errors.New("in the statement") // type
	}
	switch {
	case pod != nil:
		_, ok := x.(*Pod)
		if !ok {
			return nil // type
		}
	}
	if ok {
		return nil // none
	}
	_, ok = p.byName["a"]
	if !ok {
		return nil // none
	}
	_, known := x.(*Pod)
	work()
	if !known || !ok {
		return nil // none
	}
	if !p.Ready() {
		return nil // none
	}
	return nil // none
}
`

func TestGuards(t *testing.T) {
	s, err := parseSource("p.go", []byte(guardedSource))
	if err != nil {
		t.Fatal(err)
	}
	names := map[guardKind]string{noGuard: "none", typeGuard: "type", readyGuard: "ready"}
	checked := 0
	for i, line := range strings.Split(guardedSource, "\n") {
		_, want, marked := strings.Cut(line, " // ")
		if !marked {
			continue
		}
		checked++
		if got := names[s.guarded(position{Line: i + 1, Column: 3})]; got != want {
			t.Errorf("line %d, %s: got guard %s, want %s", i+1, strings.TrimSpace(line), got, want)
		}
	}
	if checked != 9 {
		t.Errorf("checked %d lines, want 9", checked)
	}
}

func TestReasons(t *testing.T) {
	const plugin = kubernetes + "/limitranger/admission.go"
	s, err := parseSource("p.go", []byte(guardedSource))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := unrunnable()
	if err != nil {
		t.Fatal(err)
	}
	all := reasons(entries)
	for _, test := range []struct {
		file, function string
		line           int
		want           string
	}{
		{plugins + "policy/validating/typechecking.go", "(*TypeChecker).Check", 40, "kube-controller-manager"},
		{plugins + "policy/validating/validator.go", "(*validator).Validate", 40, ""},
		{plugins + "policy/generic/policy_source.go", "SetPolicyRefreshIntervalForTests", 40, "Only tests"},
		{plugin, "(*LimitRanger).ValidateInitialization", 40, "always gives it"},
		{plugin, "(*LimitRanger).Validate", 5, "ten seconds"},
		{plugin, "(*LimitRanger).Validate", 9, "another type"},
		{plugin, "(*LimitRanger).Validate", 40, ""},
		{apiserver + "admission/configuration/configuration_manager.go", "(*poller).Run", 40, "Nothing in kube-apiserver calls"},
		{plugin, "(*poller).Run", 40, ""},
		{plugins + "webhook/accessors.go", "(*validatingWebhookAccessor).GetUID", 40, "nothing calls it"},
		{plugins + "webhook/accessors.go", "(*validatingWebhookAccessor).GetName", 40, ""},
	} {
		t.Run(fmt.Sprintf("%s line %d", test.function, test.line), func(t *testing.T) {
			i := reasonOf(all, block{File: test.file, Start: position{Line: test.line, Column: 3}}, function{name: test.function}, s)
			got := ""
			if i >= 0 {
				got = all[i].text
			}
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("reason of %s in %s, line %d: got %q, want %q", test.function, test.file, test.line, got, test.want)
			}
		})
	}
}

func TestUnrunnable(t *testing.T) {
	s := source{lines: []string{"\tif a {", "\t\treturn", "\treturn 1", "}"}}
	for _, test := range []struct {
		entry entry
		want  string // the lines
	}{
		{entry{File: "f.go", Functions: []string{"T.F"}}, "1 2 3"},
		{entry{File: "f.go", Functions: []string{"G", "T.F"}, Lines: []string{"return"}}, "2"},
		{entry{File: "f.go", Functions: []string{"T.F"}, Lines: []string{"return*", "if a {"}}, "1 2 3"},
		{entry{File: "f.go", Functions: []string{"T.F"}, Lines: []string{"if a"}}, ""},
		{entry{File: "g.go", Functions: []string{"T.F"}}, ""},
		{entry{File: "f.go", Functions: []string{"F"}}, ""},
	} {
		t.Run(fmt.Sprint(test.entry), func(t *testing.T) {
			var got []string
			for line := 1; line <= 3; line++ {
				if test.entry.has(block{File: "f.go", Start: position{Line: line}}, function{name: "(*T).F"}, s) {
					got = append(got, strconv.Itoa(line))
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("%+v: got lines %q, want %q", test.entry, got, test.want)
			}
		})
	}
}
