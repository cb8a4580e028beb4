package engine

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/judge"
)

// infrastructure returns why a failure says nothing about admission, or "": the API server
// was overloaded, could not reach its storage or did not respond, or something could not
// be observed.
func (f *failure) infrastructure() string {
	switch {
	case errors.Is(f.err, framework.ErrNoResponse):
		return "the API server did not respond"
	case errors.Is(f.err, errInfrastructure):
		return "a request during a webhook call was not answered"
	case f.err != nil:
		return ofError(f.err)
	case f.unobserved != "":
		return f.unobserved
	default:
		return ofResponse(f.result, f.mismatches)
	}
}

// errInfrastructure marks an error that says nothing about admission.
var errInfrastructure = errors.New("infrastructure")

// ofError returns why an administrative request failed, if that is infrastructure.
func ofError(err error) string {
	if apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || storageFailed(err.Error()) {
		return "an administrative request failed"
	}
	return ""
}

// ofResponse returns why a response is one of the infrastructure, not of admission. A
// webhook can refuse with every code, and a scenario can expect every code.
func ofResponse(result framework.Result, mismatches []judge.Mismatch) string {
	code := int(result.Status.Code)
	if !slices.ContainsFunc(mismatches, func(m judge.Mismatch) bool { return m.Path == "code" || m.Path == "allowed" }) {
		return ""
	}
	if strings.Contains(result.Status.Message, "webhook") || strings.Contains(result.Status.Message, "ValidatingAdmissionPolicy") {
		return ""
	}
	switch code {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fmt.Sprintf("the API server responded with %d", code)
	}
	if code >= http.StatusInternalServerError && storageFailed(result.Status.Message) {
		return "the API server could not reach its storage"
	}
	return ""
}

// storageFailed reports whether a message is one of etcd or of its client
// (go.etcd.io/etcd/api/v3rpc/rpctypes, k8s.io/apiserver/pkg/storage).
func storageFailed(message string) bool {
	for _, text := range []string{"etcdserver:", "leader changed", "rpc error: code =", "storage is (re)initializing", "no space left on device"} {
		if strings.Contains(message, text) {
			return true
		}
	}
	return false
}
