// This is the generic control plane of k8s.io/kubernetes: an API server without pods, workloads,
// services and nodes. It takes the flags with which package envtest starts kube-apiserver.
package main

import (
	"os"
	"slices"
	"strings"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of client-go
	_ "k8s.io/component-base/metrics/prometheus/version"  // the metric of the version
	"k8s.io/kubernetes/pkg/controlplane/apiserver/samples/generic/server"
)

func main() {
	os.Args = slices.DeleteFunc(os.Args, func(argument string) bool { // those for pods and services
		return strings.HasPrefix(argument, "--allow-privileged=") || strings.HasPrefix(argument, "--service-cluster-ip-range=")
	})
	os.Exit(cli.Run(server.NewCommand()))
}
