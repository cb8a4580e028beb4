package kind_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework/kind"
)

// A cluster with another version of Kubernetes, which is deleted at the end. This needs a
// container runtime.
func ExampleCreate() {
	ctx := context.Background()
	cluster, err := kind.Create(ctx, kind.Options{
		NodeImage: "kindest/node:v1.35.4",
		Progress:  func(line string) { log.Print(line) },
	})
	if err != nil {
		log.Print(err) // a kind.ErrNoRuntime without Docker, Podman or nerdctl
		return
	}
	defer func() {
		if err := cluster.Delete(ctx); err != nil {
			log.Print(err)
		}
	}()
	config, err := cluster.RESTConfig()
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(config.Host)
}

// A node of a cloud provider is not a node of a kind cluster.
func ExampleOf() {
	for _, id := range []string{"", "aws:///us-east-1a/i-0", "kind://docker/only"} {
		_, err := kind.Of(context.Background(), id, &rest.Config{})
		fmt.Println(errors.Is(err, kind.ErrNoCluster))
	}
	// Output:
	// true
	// true
	// true
}
