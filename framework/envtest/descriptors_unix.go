//go:build unix

package envtest

import (
	"fmt"
	"syscall"
)

// descriptors returns how many file descriptors each process needs, at most. etcd keeps 150 for itself, and has a
// connection from kube-apiserver for each resource. A scenario can have several webhooks, to each of which
// kube-apiserver has a connection. Many scenarios do not all call their webhooks at the same moment.
func descriptors(parallel int) uint64 {
	const base, each, many, eachOfMany = 256, 16, 16, 2
	parallel = max(parallel, 1)
	return uint64(base + each*min(parallel, many) + eachOfMany*max(parallel-many, 0))
}

// checkDescriptors returns an error if this process, and so its children, cannot have enough file descriptors. (Go
// raises the soft limit to the hard limit, in kube-apiserver and etcd too.)
func checkDescriptors(parallel int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil //nolint:nilerr // then there is perhaps no limit
	}
	has := uint64(limit.Cur) //nolint:unconvert // its type differs between systems
	if need := descriptors(parallel); has < need {
		return fmt.Errorf("%d file descriptors are too few: etcd and kube-apiserver need %d for at most %d scenarios at the same time: raise the hard limit (ulimit -n %d; LimitNOFILE in systemd; docker run --ulimit nofile=%d), or run fewer at the same time (--parallel)",
			has, need, max(parallel, 1), need, need)
	}
	return nil
}
