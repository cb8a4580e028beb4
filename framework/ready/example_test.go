package ready_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/ready"
)

func Example() {
	config := &rest.Config{Host: "https://127.0.0.1:1"} // that of your envtest.Environment, for instance
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := ready.Wait(ctx, config, ready.Options{Webhooks: []string{"guard"}, Policies: []string{"owners"}})
	fmt.Println(errors.Is(err, framework.ErrNoResponse))
	// Output: true
}
