package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fenceLimit bounds the wait for the sentinels. Policies are reread every second
// (k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_source.go).
const fenceLimit = 30 * time.Second

// refusalLimit is how long the sentinels' own webhooks may fail.
const refusalLimit = 10 * time.Second

// kinds says which kinds of object a fence is for.
type kinds struct{ MutatingWebhooks, ValidatingWebhooks, ValidatingPolicies, MutatingPolicies bool }

// kindsOf returns the kinds that manifests are of.
func kindsOf(manifests []map[string]any) kinds {
	var found kinds
	for _, manifest := range manifests {
		gvk, err := kindOf(manifest)
		if err != nil || gvk.Group != admissionGroup {
			continue
		}
		switch gvk.Kind {
		case kindMutatingWebhooks:
			found.MutatingWebhooks = true
		case kindValidatingWebhooks:
			found.ValidatingWebhooks = true
		case kindValidatingPolicy, kindValidatingBinding:
			found.ValidatingPolicies = true
		case kindMutatingPolicy, kindMutatingBinding:
			found.MutatingPolicies = true
		}
	}
	return found
}

// Settle waits until the API server acts on every write of configurations and
// policies that was finished before: it writes one sentinel of each kind, and
// asks with dry-run requests until each has left its mark. The API server sees
// writes of one kind in their order, so what was written before the sentinel is
// in force when the sentinel is. Of several API servers each is asked that can be
// addressed.
//
// The manifests say which kinds were written. For none that decides about
// requests it returns at once. Before anything else the webhooks under test among
// them must answer, each once in a run; the error says which does not, and why.
func (t *Target) Settle(ctx context.Context, manifests []map[string]any) error {
	wanted := kindsOf(manifests)
	if wanted == (kinds{}) {
		return nil
	}
	if err := t.awaitUnderTest(ctx, manifests); err != nil {
		return err
	}
	fence, err := t.raise(ctx, wanted)
	if err != nil {
		return fmt.Errorf("raise fence: %w", err)
	}
	var missing string
	began := time.Now()
	interval := soon
	if wanted.ValidatingPolicies || wanted.MutatingPolicies {
		interval = later
	}
	err = poll(ctx, interval, fenceLimit, func() (bool, error) {
		answer, lacks, err := t.probes(ctx, fence.probe(), fence.missing)
		if err != nil {
			return false, err
		}
		missing = lacks
		if err := t.options.HooksErr(); err != nil {
			return false, err
		}
		if !answer.Allowed() && time.Since(began) > refusalLimit {
			return false, fmt.Errorf("the API server does not get through to our webhooks: %s", answer.Status.Message)
		}
		return missing == "", nil
	})
	if err != nil && missing != "" && (errors.Is(err, framework.ErrNotSettled) || ctx.Err() != nil) {
		return fmt.Errorf("wait for fence: %w: still missing %s", err, missing)
	}
	if err != nil {
		return fmt.Errorf("wait for fence: %w", err)
	}
	return t.lower(ctx, fence)
}

// fence is one set of sentinels.
type fence struct {
	id, nonce string
	marks     []string
	objects   []reference
}

// raise writes the sentinels.
func (t *Target) raise(ctx context.Context, wanted kinds) (*fence, error) {
	id := "at-" + t.options.Run + "-fence"
	t.mu.Lock()
	t.nonces++
	nonce := fmt.Sprintf("n%d", t.nonces)
	first := t.owners[id] == nil
	t.mu.Unlock()
	if first {
		if err := t.openFence(ctx, id); err != nil {
			return nil, err
		}
	}
	f := &fence{id: id, nonce: nonce}
	for _, manifest := range t.sentinels(f, wanted) {
		gvk, err := kindOf(manifest)
		if err != nil {
			return nil, err
		}
		res, err := t.resources.of(gvk)
		if err != nil {
			return nil, err
		}
		scripts := map[string]hook.Script{f.webhook(framework.Mutating): f.script(framework.Mutating), f.webhook(framework.Validating): f.script(framework.Validating)}
		manifest, err = t.connect(gvk, manifest, id, scripts)
		if err != nil {
			return nil, err
		}
		manifest = labelled(t.resources.narrow(gvk, manifest, id), map[string]string{RunLabel: t.options.Run, ScenarioLabel: id})
		ref := reference{resource: res, name: id + "-" + nonce}
		f.objects = append(f.objects, ref)
		if err := t.replace(ctx, ref, manifest); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (t *Target) openFence(ctx context.Context, id string) error {
	_, err := t.request(ctx, call{method: http.MethodPost, path: "/api/v1/namespaces", body: mustJSON(map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": id, "labels": t.labels(id)},
	})}, http.StatusConflict)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && t.owners[id] == nil {
		t.owners[id] = &owner{touched: map[schema.GroupVersionResource]bool{}}
	}
	return err
}

func (f *fence) webhook(phase framework.Phase) string {
	return f.nonce + "." + string(phase) + ".fence"
}

func (f *fence) mark(who string) string { return "fence " + who + " " + f.nonce }

func (f *fence) script(phase framework.Phase) hook.Script {
	return hook.Script{Replies: []hook.Reply{{Warnings: []string{f.mark(string(phase))}}}}
}

// sentinels returns the manifests of a fence and notes the marks they leave.
func (t *Target) sentinels(f *fence, wanted kinds) []map[string]any {
	rules := []any{map[string]any{"operations": []any{"CREATE"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "scope": "Namespaced"}}
	metadata := func() map[string]any { return map[string]any{"name": f.nonce} }
	webhooks := func(kind string, phase framework.Phase) map[string]any {
		f.marks = append(f.marks, f.mark(string(phase)))
		return map[string]any{"apiVersion": admissionGroup + "/v1", "kind": kind, "metadata": metadata(), "webhooks": []any{
			map[string]any{"name": f.webhook(phase), "rules": rules, "timeoutSeconds": int64(5)},
		}}
	}
	var out []map[string]any
	if wanted.MutatingWebhooks {
		out = append(out, webhooks(kindMutatingWebhooks, framework.Mutating))
	}
	if wanted.ValidatingWebhooks {
		out = append(out, webhooks(kindValidatingWebhooks, framework.Validating))
	}
	if wanted.ValidatingPolicies {
		f.marks = append(f.marks, f.mark("policy"))
		out = append(out, map[string]any{
			"apiVersion": admissionGroup + "/v1", "kind": kindValidatingPolicy, "metadata": metadata(),
			"spec": map[string]any{
				"matchConstraints": map[string]any{"resourceRules": rules},
				"validations":      []any{map[string]any{"expression": "false", "message": f.mark("policy")}},
			},
		}, map[string]any{
			"apiVersion": admissionGroup + "/v1", "kind": kindValidatingBinding, "metadata": metadata(),
			"spec": map[string]any{"policyName": f.nonce, "validationActions": []any{"Warn"}},
		})
	}
	if wanted.MutatingPolicies {
		out = append(out, map[string]any{
			"apiVersion": admissionGroup + "/v1", "kind": kindMutatingPolicy, "metadata": metadata(),
			"spec": map[string]any{
				"matchConstraints": map[string]any{"resourceRules": rules}, "reinvocationPolicy": "Never", "failurePolicy": "Ignore",
				"mutations": []any{map[string]any{"patchType": "ApplyConfiguration", "applyConfiguration": map[string]any{
					"expression": fmt.Sprintf(`Object{metadata: Object.metadata{annotations: {"fence-map": %q}}}`, f.nonce),
				}}},
			},
		}, map[string]any{
			"apiVersion": admissionGroup + "/v1", "kind": kindMutatingBinding, "metadata": metadata(),
			"spec": map[string]any{"policyName": f.nonce},
		})
		f.marks = append(f.marks, markMAP)
	}
	return out
}

// markMAP stands for the annotation that a mutating policy's sentinel leaves.
const markMAP = "fence mutating policy"

// probe is the dry-run request that the sentinels mark.
func (f *fence) probe() call {
	return call{method: http.MethodPost, path: "/api/v1/namespaces/" + f.id + "/configmaps", contentType: "application/json", query: map[string][]string{"dryRun": {"All"}}, body: mustJSON(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "probe"},
	})}
}

// missing names the sentinels that left no mark on an answer.
func (f *fence) missing(answer framework.Result) string {
	if !answer.Allowed() {
		return fmt.Sprintf("all: the API server refused the dry-run request: %s", answer.Status.Message)
	}
	var missing []string
	for _, mark := range f.marks {
		if mark == markMAP {
			annotation, _ := nestedString(answer.Fields(), "metadata", "annotations", "fence-map")
			if annotation != f.nonce {
				missing = append(missing, mark)
			}
			continue
		}
		if !slices.ContainsFunc(answer.Warnings, func(warning string) bool { return strings.HasSuffix(warning, mark) }) {
			missing = append(missing, mark)
		}
	}
	return strings.Join(missing, ", ")
}

// lower removes the sentinels.
func (t *Target) lower(ctx context.Context, f *fence) error {
	for _, ref := range f.objects {
		if err := t.deleteObject(ctx, ref); err != nil {
			return fmt.Errorf("lower fence: %w", err)
		}
	}
	return nil
}
