package envtest

import (
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// DiscardLogs discards the logs of controller-runtime. Call it at the start of a program that
// sets no logger for controller-runtime, which otherwise prints a stack trace to standard
// error. It has no effect if a logger is already set.
func DiscardLogs() { log.SetLogger(logr.Discard()) }
