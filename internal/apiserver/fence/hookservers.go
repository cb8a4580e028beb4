package fence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
)

// hookTimeout is the timeoutSeconds of the webhooks that probe: how long an address
// that does not respond delays the response of the API server.
const hookTimeout = 2

// HookServers returns for each Hook server whether the API server can call it. It
// installs one validating webhook for each server, in one configuration, and sends
// dry-run requests until one of the servers is called or the limit is reached. All
// webhooks are called for one request, so the first request that reaches one server has
// tried all. The webhooks ignore failures and match nothing else.
//
// The caller removes what was installed in the scope. An error means that it could not
// find out.
func HookServers(ctx context.Context, installer *install.Installer, scope *install.Scope, servers []*hook.Server, limit time.Duration) ([]bool, error) {
	reached := make([]bool, len(servers))
	recordings := make([]*hook.Recording, len(servers))
	var webhooks []any
	for i, server := range servers {
		name := fmt.Sprintf("n%d.reach.admissiontest.dev", i)
		registered, err := server.Register(hook.Hook{Owner: scope.ID, Configuration: "reach", Webhook: name, Phase: framework.Validating})
		if err != nil {
			return reached, err
		}
		recordings[i] = server.Record(scope.ID)
		defer recordings[i].Stop()
		defer server.Unregister(scope.ID)
		webhooks = append(webhooks, map[string]any{
			"name": name, "rules": ProbeRules(), "failurePolicy": "Ignore", "timeoutSeconds": int64(hookTimeout),
			"clientConfig": install.URLClientConfig(registered),
		})
	}
	_, err := installer.InstallAdmission(ctx, scope, map[string]any{
		"apiVersion": install.AdmissionGroup + "/v1", "kind": install.KindValidatingWebhooks,
		"metadata": map[string]any{"name": "reach"}, "webhooks": webhooks,
	}, nil)
	if err != nil {
		return reached, err
	}
	var refused error
	err = client.Poll(ctx, client.Later, limit, func() (bool, error) {
		for _, subject := range slices.Backward(Subjects()) { // an API server can store some kinds without admission
			answer, err := installer.Client.Send(ctx, probe(subject, scope.ID, map[string]any{"name": ProbeName}))
			if err != nil {
				return false, err
			}
			refused = nil
			if !answer.Allowed() { // the last one is of the usual kind
				refused = fmt.Errorf("the API server refused the dry-run request: %d %w", answer.Status.Code, &apierrors.StatusError{ErrStatus: answer.Status})
			}
		}
		for i, recording := range recordings {
			reached[i] = len(recording.Calls()) > 0
		}
		return slices.Contains(reached, true), nil
	})
	if errors.Is(err, framework.ErrTimeout) {
		err = refused // without a refusal the API server just cannot call any of the servers
	}
	return reached, err
}
