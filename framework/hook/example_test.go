package hook_test

import (
	"context"
	"fmt"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
)

// A Hook that denies. The URL and CABundle go into the clientConfig of the webhook
// deny.example.com in the webhook configuration policy.
func Example() {
	server, err := hook.Start(context.Background(), hook.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	client, err := server.Register(hook.Hook{
		Owner: "mine", Configuration: "policy", Webhook: "deny.example.com", Phase: framework.Validating,
		Script: hook.Script{Replies: []hook.Reply{{Status: map[string]any{"code": 403, "message": "not today"}}}},
	})
	calls := server.Record("mine")
	defer calls.Stop()
	fmt.Println(client.URL != "", err, len(calls.Calls()))
	// Output: true <nil> 0
}

// The first call is allowed, the second one hangs, and all later ones get 500.
func ExampleScript() {
	script := hook.Script{Replies: []hook.Reply{{}, {Fault: hook.Hang}, {Fault: hook.HTTP500}}}
	fmt.Println(script.Validate())
	fmt.Println(hook.Script{Replies: []hook.Reply{{Fault: "hangs"}}}.Validate())
	// Output:
	// <nil>
	// check script: reply 1: fault: unknown fault "hangs"; did you mean "hang"?
}
