package builtin

import (
	"context"
	"fmt"
	"slices"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/suggest"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// owner is the owner of all Hooks: each test has its own Hook server, so one owner is enough.
const owner = "chain"

// Hooks answers and records the calls of the webhooks that Install puts into a World. Make Hooks
// with NewHooks.
type Hooks struct {
	t         framework.T
	world     *fakes.World
	server    *hook.Server
	recording *hook.Recording
}

// NewHooks starts a Hook server. The server stops when the test ends.
func NewHooks(t framework.T, w *fakes.World) *Hooks {
	t.Helper()
	server, err := hook.Start(context.Background(), hook.Options{})
	if err != nil {
		t.Fatalf("start the Hook server: %v", err)
		return nil
	}
	t.Cleanup(func() { _ = server.Close() })
	return &Hooks{t: t, world: w, server: server, recording: server.Record(owner)}
}

// Install puts a copy of a MutatingWebhookConfiguration or ValidatingWebhookConfiguration of
// admissionregistration.k8s.io/v1 into the World, with the defaults of [Stored]. Each webhook
// without clientConfig becomes a Hook: it answers with the Script of the same name in scripts, or
// allows every request if scripts has none. Install also sets admissionReviewVersions and
// sideEffects of a Hook if they are missing. A Script whose name is not that of a Hook ends the
// test.
func (h *Hooks) Install(configuration runtime.Object, scripts map[string]hook.Script) {
	h.t.Helper()
	if err := h.install(configuration, scripts); err != nil {
		h.t.Fatalf("install Hooks: %v", err)
	}
}

// Calls returns the calls of the Hooks so far, in the order in which they arrived. The Trace of a
// harness.Result has only the calls of plugins. To get both, use result.Trace.With(hooks.Calls()).
func (h *Hooks) Calls() framework.Trace { return h.recording.Calls() }

func (h *Hooks) install(configuration runtime.Object, scripts map[string]hook.Script) error {
	made, err := stored(configuration)
	if err != nil {
		return err
	}
	r := registrar{server: h.server, scripts: scripts}
	switch typed := made.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for at := range typed.Webhooks {
			w := &typed.Webhooks[at]
			r.register(hook.Hook{Configuration: typed.Name, Webhook: w.Name, Phase: framework.Mutating}, &w.ClientConfig, &w.AdmissionReviewVersions, &w.SideEffects)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for at := range typed.Webhooks {
			w := &typed.Webhooks[at]
			r.register(hook.Hook{Configuration: typed.Name, Webhook: w.Name, Phase: framework.Validating}, &w.ClientConfig, &w.AdmissionReviewVersions, &w.SideEffects)
		}
	default:
		return fmt.Errorf("got a %T, want a webhook configuration of admissionregistration.k8s.io/v1", configuration)
	}
	if r.err != nil {
		return r.err
	}
	for name := range scripts {
		if !slices.Contains(r.names, name) {
			return fmt.Errorf("there is a Script for %q, which is no webhook without clientConfig of this configuration%s", name, suggest.DidYouMean(name, r.names))
		}
	}
	h.world.Put(made)
	return nil
}

// registrar registers the Hooks of one configuration.
type registrar struct {
	server  *hook.Server
	scripts map[string]hook.Script
	names   []string
	err     error // the first one
}

func (r *registrar) register(made hook.Hook, client *admissionregistrationv1.WebhookClientConfig, versions *[]string, effects **admissionregistrationv1.SideEffectClass) {
	if r.err != nil || client.URL != nil || client.Service != nil {
		return
	}
	made.Owner, made.Script = owner, r.scripts[made.Webhook]
	r.names = append(r.names, made.Webhook)
	registered, err := r.server.Register(made)
	if err != nil {
		r.err = err
		return
	}
	client.URL, client.CABundle = &registered.URL, registered.CABundle
	if len(*versions) == 0 {
		*versions = []string{"v1"}
	}
	if *effects == nil {
		none := admissionregistrationv1.SideEffectClassNone
		*effects = &none
	}
}
