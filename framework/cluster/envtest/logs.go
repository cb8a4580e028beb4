package envtest

import (
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// DiscardLogs throws away what controller-runtime logs. Call it at the start of a
// program that has no logger: without one, controller-runtime prints a stack
// trace to standard error. It has no effect after somebody else set a logger.
func DiscardLogs() { log.SetLogger(logr.Discard()) }
