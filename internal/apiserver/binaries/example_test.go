package binaries_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

func ExampleEnsure() {
	got, err := binaries.Ensure(context.Background(), binaries.Options{
		Version:  "1.37.2",
		Progress: func(line string) { log.Print(line) },
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(got.KubeAPIServer(), got.Etcd())
}

func ExampleFind() {
	_, err := binaries.Find(context.Background(), binaries.Options{Version: "latest"})
	fmt.Println(errors.Is(err, binaries.ErrBadVersion))
	// Output: true
}
