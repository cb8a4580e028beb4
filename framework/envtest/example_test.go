package envtest_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/discovery"

	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// An API server with another flag, of which a client reads the version.
func Example() {
	ctx := context.Background()
	found, err := binaries.Ensure(ctx, binaries.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := envtest.Start(ctx, envtest.Options{
		Assets:  found,
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
	fmt.Println(err, version.GitVersion == "v"+found.Version)
	// Output: <nil> true
}
