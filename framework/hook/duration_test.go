package hook_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework/hook"
)

func TestDurationIsText(t *testing.T) {
	var reply hook.Reply
	if err := json.Unmarshal([]byte(`{"delay": "150ms"}`), &reply); err != nil || time.Duration(reply.Delay) != 150*time.Millisecond {
		t.Errorf("got %s, %v; want 150ms", reply.Delay, err)
	}
	for _, wrong := range []string{`{"delay": "soon"}`, `{"delay": 150}`, `{"delay": "150"}`, `{"delay": [1]}`} {
		t.Run(wrong, func(t *testing.T) {
			if err := json.Unmarshal([]byte(wrong), &reply); err == nil || !strings.Contains(err.Error(), `"150ms"`) {
				t.Errorf("got %v, want an error that shows the notation", err)
			}
		})
	}
	written, err := json.Marshal(hook.Reply{Delay: hook.Duration(time.Second)})
	if err != nil || string(written) != `{"delay":"1s"}` {
		t.Errorf("got %s, %v; want the delay as text", written, err)
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
		t.Run(op, func(t *testing.T) {
			var operation hook.PatchOperation
			if err := json.Unmarshal([]byte(`{"op":"`+op+`","path":"/a","value":null}`), &operation); err != nil {
				t.Fatal(err)
			}
			written, err := json.Marshal([]hook.PatchOperation{operation})
			if err != nil || string(written) != "["+want+"]" {
				t.Errorf("got %s, %v; want [%s]", written, err, want)
			}
		})
	}
}
