package assets_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
)

func ExampleEnsure() {
	got, err := assets.Ensure(context.Background(), assets.Options{
		Version:  "1.36.3",
		Progress: func(line string) { log.Print(line) },
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(got.KubeAPIServer(), got.Etcd())
}

func ExampleFind() {
	_, err := assets.Find(context.Background(), assets.Options{Version: "latest"})
	fmt.Println(errors.Is(err, assets.ErrBadVersion))
	// Output: true
}
