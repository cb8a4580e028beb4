package main

import "github.com/admissiontest/admissiontest/internal/kubeapiserver/observe"

// packages returns the packages with plugins of the user. Here there are none. For a server with
// such packages, a generated file replaces this file.
func packages() []observe.Package { return nil }
