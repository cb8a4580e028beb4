package engine

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
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
		return f.ofResponse()
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
// webhook can refuse with every code, and a scenario can expect every code. (One that expects
// a refusal without a code gets one from the infrastructure too, and misses what it expects
// besides.)
func (f *failure) ofResponse() string {
	result, code := f.result, int(f.result.Status.Code)
	if len(f.mismatches) == 0 {
		return ""
	}
	if why := startingUp(result.Status); why != "" {
		return why
	}
	if f.codeExpected {
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

// startingUp returns why a refusal is one of an API server that has not read everything yet,
// or "": its authorizer has no roles (k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go),
// or a plugin has no objects (k8s.io/apiserver/pkg/admission/plugin).
func startingUp(status metav1.Status) string {
	message := status.Message
	switch {
	case status.Code != http.StatusForbidden || strings.Contains(message, "denied the request"):
		return ""
	case strings.Contains(message, "not yet ready to handle request"):
		return "an admission plugin was not ready"
	case strings.Contains(message, " is forbidden: User ") && strings.Contains(message, " cannot "):
		return "the authorizer refused the request"
	default:
		return ""
	}
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
