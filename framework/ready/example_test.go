package ready_test

import (
	"context"
	"fmt"
	"time"

	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/ready"
)

// A policy that nobody creates within a second.
func Example() {
	server, err := envtest.Start(context.Background(), envtest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		if err := server.Stop(); err != nil {
			fmt.Println(err)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	fmt.Println(ready.Wait(ctx, server.Config, ready.Options{Policies: []string{"owners"}}))
	// Output:
	// AdmissionPolicy "owners": there is no such webhook, or no such policy with a binding
	// context deadline exceeded
}
