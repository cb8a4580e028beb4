package expect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
)

// ErrDuringCall marks the error of a request that was sent during a webhook call, if its failure
// says nothing about admission.
var ErrDuringCall = errors.New("a request during a webhook call got no answer")

// InfrastructureError returns why an error of a request says nothing about admission, or "". For nil it returns "".
func InfrastructureError(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, framework.ErrNoResponse):
		return "the API server did not respond"
	case errors.Is(err, ErrDuringCall):
		return "the API server did not answer a request that the scenario sent during a webhook call"
	case apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), storageFailed(err.Error()):
		return "the API server was not ready or overloaded, or its storage failed"
	default:
		return ""
	}
}

// Dropped reports whether an API server that could be reached closed the connection, or the stream of HTTP/2,
// instead of answering a request.
func Dropped(err error) bool {
	var network *net.OpError
	dial := errors.As(err, &network) && network.Op == "dial"
	return errors.Is(err, framework.ErrNoResponse) && !dial && !errors.Is(err, context.DeadlineExceeded)
}

// InfrastructureOf returns why a response that is not as expected says nothing about admission, or "".
// CodeExpected is true if the response has the expected code. A webhook can refuse with every code,
// and a scenario can expect every code. (If a scenario expects a refusal and no code, a response of
// the infrastructure also counts as the refusal, and only the other expectations do not hold.)
func InfrastructureOf(status metav1.Status, codeExpected bool) string {
	if why := startingUp(status); why != "" {
		return why
	}
	if codeExpected {
		return ""
	}
	if strings.Contains(status.Message, "too many open files") {
		return "the API server could not open more files"
	}
	if strings.Contains(status.Message, "webhook") || strings.Contains(status.Message, "ValidatingAdmissionPolicy") {
		return ""
	}
	code := int(status.Code)
	switch code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fmt.Sprintf("the API server responded with %d", code)
	}
	if code >= http.StatusInternalServerError && storageFailed(status.Message) {
		return "the API server could not reach its storage"
	}
	return ""
}

// forbidden matches what an API server says of a request that its authorizer refused
// (k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go).
var forbidden = regexp.MustCompile(`(?s) is forbidden: (User ".*" cannot .*)$`)

// startingUp returns why a refusal can come from an API server that has not read everything yet,
// or "": its authorizer has no roles, or a plugin has no objects (k8s.io/apiserver/pkg/admission/plugin).
// If the user really lacks the right, that is why the scenario shows nothing.
func startingUp(status metav1.Status) string {
	message := status.Message
	switch found := forbidden.FindStringSubmatch(message); {
	case status.Code != http.StatusForbidden || strings.Contains(message, "denied the request"):
		return ""
	case strings.Contains(message, "not yet ready to handle request"):
		return "an admission plugin was not ready"
	case found != nil:
		roles := "a Role and a RoleBinding"
		if strings.Contains(found[1], " at the cluster scope") {
			roles = "a ClusterRole and a ClusterRoleBinding"
		}
		return fmt.Sprintf(`the authorizer refused the request: %s; grant it with %s that the scenario is given, or, if it is the user of the run, with what "admissiontest rbac" prints`, found[1], roles)
	default:
		return ""
	}
}

// storageFailed reports whether a message comes from etcd or from its client
// (go.etcd.io/etcd/api/v3rpc/rpctypes, k8s.io/apiserver/pkg/storage).
func storageFailed(message string) bool {
	for _, text := range []string{"etcdserver:", "leader changed", "rpc error: code =", "storage is (re)initializing", "no space left on device"} {
		if strings.Contains(message, text) {
			return true
		}
	}
	return false
}
