package envtest_test

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/client-go/discovery"

	"github.com/admissiontest/admissiontest/framework/envtest"
)

// An API server with another flag, of which a client reads the version.
func Example() {
	ctx := context.Background()
	server, err := envtest.Start(ctx, envtest.Options{
		Profile: envtest.Profile{Flags: map[string]string{"disable-admission-plugins": "PodSecurity"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		if err := server.Stop(); err != nil {
			fmt.Println(err)
		}
	}()
	client, err := discovery.NewDiscoveryClientForConfig(server.Config)
	if err != nil {
		fmt.Println(err)
		return
	}
	version, err := client.ServerVersion()
	fmt.Println(err, strings.HasPrefix(version.GitVersion, "v1."))
	// Output: <nil> true
}
