package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/installed"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/suites/webhook"
)

// removalTime limits how long the removal of the namespace may take.
const removalTime = 2 * time.Minute

// checkInstalled checks the rules on webhooks that are installed on a cluster.
func (o contractOptions) checkInstalled(ctx context.Context) (result report.Report, err error) {
	switch {
	case o.url != "" || len(o.replicas) > 0 || o.caFile != "" || o.serverName != "" || o.kind != "" || len(o.configurations) > 0:
		return result, exit.Usagef("--webhook, --kubeconfig and --context cannot be combined with --url, --replica, --ca-file, --server-name, --kind and --configuration: the configuration of the cluster says all that")
	case len(o.webhooks) == 0:
		return result, exit.Usagef("--webhook is required with --kubeconfig: give the name of a webhook, or of a webhook configuration")
	case len(o.allow)+len(o.reject) == 0:
		return result, exit.Usagef("--allow or --reject is required: the rules need samples")
	}
	config, err := o.cluster.Provider(nil).Connect(ctx)
	if err != nil {
		return result, err
	}
	backends, err := installed.Find(ctx, config, o.webhooks)
	switch {
	case errors.Is(err, installed.ErrRight):
		return contractReport(o.strict, o.inconclusive(nil, err)), nil
	case errors.Is(err, installed.ErrUnknown):
		return result, exit.New(exit.Usage, fmt.Errorf("--webhook: %w", err))
	case err != nil:
		return result, exit.New(exit.Infrastructure, err)
	}
	server, lacks := installed.Open(ctx, config) // the webhook itself can make it fail
	defer func() {
		removing, cancel := context.WithTimeout(context.WithoutCancel(ctx), removalTime)
		defer cancel()
		if failed := server.Close(removing); failed != nil {
			err = errors.Join(err, exit.New(exit.Infrastructure, failed))
		}
	}()
	var outcomes []webhook.Outcome
	for _, each := range backends {
		checked, err := o.checkBackend(ctx, each, server, lacks)
		if err != nil {
			return result, err
		}
		outcomes = append(outcomes, checked...)
	}
	result = contractReport(o.strict, outcomes)
	result.Target.ServerVersion = server.Version
	return result, nil
}

// checkBackend checks the rules on the webhooks of one server. Lacks is why no dry run can be sent, or nil.
func (o contractOptions) checkBackend(ctx context.Context, b *installed.Backend, server *installed.Server, lacks error) ([]webhook.Outcome, error) {
	reaching, stop := context.WithCancel(ctx)
	defer stop()
	s := webhook.Subject{Name: b.String(), ServerName: b.ServerName, CA: b.CA}
	s.Allow, s.Reject = o.samples()
	around, err := b.Around(ctx, o.objects(s))
	var addresses []string
	if err == nil {
		addresses, err = b.Forward(reaching)
	}
	if err == nil {
		s.URL, s.Replicas = addresses[0], addresses[1:]
		err = connects(ctx, s.URL)
	}
	switch {
	case errors.Is(err, installed.ErrRight):
		return o.inconclusive(b, err), nil
	case err != nil:
		return nil, exit.New(exit.Infrastructure, fmt.Errorf("connect to %s: %w", b, err))
	}
	s.Configurations = manifestsOf(append(around, b.Configurations...))
	s.APIServer = webhook.APIServer{User: server.User, DryRun: server.DryRun}
	if lacks != nil {
		s.APIServer.DryRun = func(context.Context, *unstructured.Unstructured) error { return lacks }
	} else {
		s.Configurations = append(s.Configurations, manifestsOf([]map[string]any{server.Namespace})...)
		s.APIServer.Namespace = (&unstructured.Unstructured{Object: server.Namespace}).GetName()
	}
	checked := webhook.Check(ctx, s, o.options()...)
	if len(checked.Misuse) > 0 {
		return nil, exit.New(exit.Usage, errors.New(strings.Join(checked.Misuse, "\n")))
	}
	return checked.Outcomes, nil
}

// objects returns the objects of samples. The Subject reports those that cannot be read.
func (o contractOptions) objects(s webhook.Subject) []map[string]any {
	var files []string
	for _, each := range append(s.Allow, s.Reject...) {
		files = append(files, each.File)
	}
	project, _ := shipped.Read(files...)
	return project.Objects()
}

// inconclusive returns the outcomes of the rules for webhooks that could not be called: of the rules in --only, or of all rules.
func (o contractOptions) inconclusive(b *installed.Backend, why error) []webhook.Outcome {
	var names []string
	if b != nil {
		for _, each := range b.Configurations {
			w, _, _ := unstructured.NestedSlice(each, "webhooks")
			for _, fields := range w {
				of, _ := fields.(map[string]any)
				name, _ := of["name"].(string)
				names = append(names, name)
			}
		}
	} else {
		names = o.webhooks
	}
	var outcomes []webhook.Outcome
	for _, rule := range webhook.Rules() {
		if len(o.only) > 0 && !slices.ContainsFunc(o.only, rule.Is) {
			continue
		}
		for _, name := range names {
			outcomes = append(outcomes, webhook.Outcome{Webhook: name, Rule: rule, Verdict: framework.Inconclusive, Reason: why.Error()})
		}
	}
	return outcomes
}
