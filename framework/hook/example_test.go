package hook_test

import (
	"context"
	"fmt"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
)

// A Hook that denies: its URL and CABundle go into the clientConfig of a webhook
// named deny.example.com in a webhook configuration named policy.
func Example() {
	server, err := hook.Start(context.Background(), hook.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	endpoint, err := server.Register(hook.Hook{
		Owner: "mine", Configuration: "policy", Webhook: "deny.example.com", Phase: framework.Validating,
		Script: hook.Script{Replies: []hook.Reply{{Status: map[string]any{"code": 403, "message": "not today"}}}},
	})
	fmt.Println(endpoint.URL != "", err, len(server.Calls("mine")))
	// Output: true <nil> 0
}

// The second call finds the webhook hanging, every later one finds it broken.
func ExampleScript() {
	script := hook.Script{Replies: []hook.Reply{{}, {Fault: hook.Hang}, {Fault: hook.HTTP500}}}
	fmt.Println(script.Validate())
	fmt.Println(hook.Script{Replies: []hook.Reply{{Fault: "hangs"}}}.Validate())
	// Output:
	// <nil>
	// check script: reply 1: fault: unknown fault "hangs"; did you mean "hang"?
}
