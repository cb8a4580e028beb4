package binaries

import "fmt"

// checkPlatform returns an error for an operating system, as in GOOS, on which no server of this module starts.
func checkPlatform(goos string) error {
	if goos != "windows" {
		return nil
	}
	return fmt.Errorf("kube-apiserver and etcd do not start on %s: use Linux, macOS or WSL, or a cluster (run --kubeconfig FILE)", goos)
}
