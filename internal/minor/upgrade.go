package minor

import (
	"reflect"

	"k8s.io/apimachinery/pkg/util/httpstream"
)

// IsUpgradeFailure reports whether a server refused to upgrade a connection to a stream. Since
// 0.36, client-go's websocket dialer returns an error type of k8s.io/streaming.
// httpstream.IsUpgradeFailure of k8s.io/apimachinery does not recognise this type, and code that
// also compiles with 0.34 cannot name it.
func IsUpgradeFailure(err error) bool {
	if err == nil {
		return false
	}
	if httpstream.IsUpgradeFailure(err) || Name(reflect.TypeOf(err)) == "*k8s.io/streaming/pkg/httpstream.UpgradeFailureError" {
		return true
	}
	switch wrapper := err.(type) { //nolint:errorlint // this walks the tree of errors itself
	case interface{ Unwrap() error }:
		return IsUpgradeFailure(wrapper.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range wrapper.Unwrap() {
			if IsUpgradeFailure(inner) {
				return true
			}
		}
	}
	return false
}
