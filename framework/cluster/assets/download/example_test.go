package download_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/framework/cluster/assets/download"
)

// Binaries of another version, from the network unless the cache has them.
func ExampleDownload() {
	found, err := download.Download(context.Background(), assets.Options{
		Version:  "1.36.0",
		Progress: func(line string) { log.Print(line) },
	})
	if err != nil {
		log.Print(err) // an assets.ErrNoDownload without a network
		return
	}
	fmt.Println(found.KubeAPIServer(), found.Etcd())
}

// "latest" is not a version.
func ExampleDownload_badVersion() {
	_, err := download.Download(context.Background(), assets.Options{Version: "latest"})
	fmt.Println(errors.Is(err, assets.ErrBadVersion))
	// Output: true
}
