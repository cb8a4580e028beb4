package hook_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/invopop/jsonschema"

	"github.com/admissiontest/admissiontest/framework/hook"
)

func TestDurationIsText(t *testing.T) {
	for name, decode := range map[string]func([]byte, any) error{
		"JSON": json.Unmarshal,
		"YAML": func(data []byte, into any) error { return yaml.Unmarshal(data, into) },
	} {
		var reply hook.Reply
		if err := decode([]byte(`{"delay": "150ms"}`), &reply); err != nil || time.Duration(reply.Delay) != 150*time.Millisecond {
			t.Errorf("%s: got %s, %v; want 150ms", name, reply.Delay, err)
		}
		for _, wrong := range []string{`{"delay": "soon"}`, `{"delay": 150}`, `{"delay": "150"}`, `{"delay": [1]}`} {
			if err := decode([]byte(wrong), &reply); err == nil || !strings.Contains(err.Error(), `"150ms"`) {
				t.Errorf("%s: %s: got %v, want an error that shows how it is written", name, wrong, err)
			}
		}
	}
	written, err := json.Marshal(hook.Reply{Delay: hook.Duration(time.Second)})
	if err != nil || string(written) != `{"delay":"1s"}` {
		t.Errorf("got %s, %v; want the delay as text", written, err)
	}
}

func TestDurationErrorHasPosition(t *testing.T) {
	var reply hook.Reply
	err := yaml.Unmarshal([]byte("warnings: []\ndelay: soon\n"), &reply)
	var positioned *yaml.SyntaxError
	if !errors.As(err, &positioned) || positioned.Token.Position.Line != 2 || positioned.Token.Position.Column != 8 {
		t.Errorf("got %v, want an error at line 2, column 8", err)
	}
	if err := yaml.Unmarshal([]byte("delay: &d 2s\n"), &reply); err != nil || reply.Delay != hook.Duration(2*time.Second) {
		t.Errorf("anchored: got %s, %v; want 2s", reply.Delay, err)
	}
}

func TestSchemas(t *testing.T) {
	schema := (&jsonschema.Reflector{DoNotReference: true}).Reflect(hook.Reply{})
	delay, _ := schema.Properties.Get("delay")
	if delay == nil || delay.Type != "string" {
		t.Fatalf("delay: got schema %+v, want that of a string", delay)
	}
	for text, want := range map[string]bool{"150ms": true, "1m30s": true, "1.5s": true, "0": true, "150": false, "soon": false, "": false} {
		if got := regexp.MustCompile(delay.Pattern).MatchString(text); got != want {
			t.Errorf("pattern %s: got %t for %q, want %t", delay.Pattern, got, text, want)
		}
	}
	fault, _ := schema.Properties.Get("fault")
	if fault == nil || len(fault.Enum) != len(hook.Faults()) {
		t.Errorf("fault: got schema %+v, want the %d names", fault, len(hook.Faults()))
	}
}

// TestPatchOperationKeepsNull shows that a null written in a file is sent.
func TestPatchOperationKeepsNull(t *testing.T) {
	for op, want := range map[string]string{
		"add":     `{"op":"add","path":"/a","value":null}`,
		"replace": `{"op":"replace","path":"/a","value":null}`,
		"test":    `{"op":"test","path":"/a","value":null}`,
		"remove":  `{"op":"remove","path":"/a"}`,
	} {
		var operation hook.PatchOperation
		if err := yaml.Unmarshal([]byte("op: "+op+"\npath: /a\nvalue: null\n"), &operation); err != nil {
			t.Fatal(err)
		}
		written, err := json.Marshal([]hook.PatchOperation{operation})
		if err != nil || string(written) != "["+want+"]" {
			t.Errorf("got %s, %v; want [%s]", written, err, want)
		}
	}
}
