package expect_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
)

func TestInfrastructureError(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"none":                  {nil, ""},
		"no response":           {fmt.Errorf("send: %w", framework.ErrNoResponse), "the API server did not respond"},
		"during a webhook call": {fmt.Errorf("meanwhile: %w", expect.ErrDuringCall), "the API server did not answer a request that the scenario sent during a webhook call"},
		"both":                  {errors.Join(expect.ErrDuringCall, framework.ErrNoResponse), "the API server did not respond"},
		"overloaded":            {fmt.Errorf("install: %w", apierrors.NewTooManyRequestsError("wait")), "the API server was not ready or overloaded, or its storage failed"},
		"storage":               {errors.New("etcdserver: leader changed"), "the API server was not ready or overloaded, or its storage failed"},
		"bad request":           {apierrors.NewBadRequest("no"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := expect.InfrastructureError(test.err); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestInfrastructureOf(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code         int32
		message      string
		codeExpected bool
		want         string
	}{
		"not available":              {503, "shutting down", false, "the API server responded with 503"},
		"a proxy":                    {502, "bad gateway", false, "the API server responded with 502"},
		"not available, as expected": {503, "shutting down", true, ""},
		"storage":                    {500, "rpc error: code = Unavailable", false, "the API server could not reach its storage"},
		"another error":              {500, "no such thing", false, ""},
		"a webhook":                  {503, `admission webhook "a" denied the request`, false, ""},
		"a policy":                   {429, "ValidatingAdmissionPolicy 'a' denied request", false, ""},
		"plugin not ready":           {403, `configmaps "a" is forbidden: not yet ready to handle request`, true, "an admission plugin was not ready"},
		"no roles yet":               {403, `configmaps is forbidden: User "a" cannot create resource "configmaps"`, true, "the authorizer refused the request"},
		"refused":                    {403, "no", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := expect.InfrastructureOf(metav1.Status{Code: test.code, Message: test.message}, test.codeExpected); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
