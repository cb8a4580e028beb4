// Command make writes ca.crt, tls.crt and tls.key to a folder.
package main

import (
	"fmt"
	"os"

	"example.com/ingress-guard/certs"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: make DIR")
		os.Exit(2)
	}
	made, err := certs.Make()
	if err == nil {
		err = made.Write(os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
