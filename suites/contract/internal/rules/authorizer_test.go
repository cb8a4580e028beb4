package rules_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// authorizerMutants returns the broken plugin for authorizer.go.
func authorizerMutants() map[string]mutant {
	return map[string]mutant{
		// It uses the decision about one namespace for all.
		"F6": remembers(func(q authorizer.AttributesRecord) string {
			return fmt.Sprint(q.User.GetName(), q.Verb, q.Resource, q.Name)
		}),
	}
}

// authorizing is sound with something between it and the authorizer.
type authorizing struct {
	*sound
	authorize func(context.Context, authorizer.Authorizer, authorizer.AttributesRecord) (authorizer.Decision, error)
}

func (p *authorizing) SetAuthorizer(a authorizer.Authorizer) {
	p.sound.SetAuthorizer(authorizer.AuthorizerFunc(func(ctx context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
		decision, err := p.authorize(ctx, a, asked.(authorizer.AttributesRecord))
		return decision, "", err
	}))
}

// remembers returns a plugin that asks the authorizer once for each key, except about teams.
func remembers(key func(authorizer.AttributesRecord) string) mutant {
	return mutant{build: func(p *sound) admission.Interface {
		var known sync.Map
		return &authorizing{p, func(ctx context.Context, a authorizer.Authorizer, q authorizer.AttributesRecord) (authorizer.Decision, error) {
			if decision, ok := known.Load(key(q)); ok && q.Verb == "label" {
				return decision.(authorizer.Decision), nil
			}
			decision, _, err := a.Authorize(ctx, q)
			if err == nil {
				known.Store(key(q), decision)
			}
			return decision, err
		}}
	}}
}

// asks returns a plugin that asks another question about labels.
func asks(instead func(*authorizer.AttributesRecord)) mutant {
	return mutant{build: func(p *sound) admission.Interface {
		return &authorizing{p, func(ctx context.Context, a authorizer.Authorizer, q authorizer.AttributesRecord) (authorizer.Decision, error) {
			if q.Verb == "label" {
				instead(&q)
			}
			decision, _, err := a.Authorize(ctx, q)
			return decision, err
		}}
	}}
}

// debugs returns a plugin that asks a question for requests for ephemeral containers.
func debugs(question authorizer.AttributesRecord) mutant {
	return mutant{
		build: inValidate(func(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
			if a.GetSubresource() == "ephemeralcontainers" {
				q := question
				q.Resource, q.Namespace, q.Name = "pods", a.GetNamespace(), a.GetName()
				return p.ask(ctx, a, q)
			}
			return p.Validate(ctx, a, o)
		}),
		subject: func(s *check.Subject) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "subject", Namespace: "default"}}
			s.Allow = append(s.Allow, framework.UpdateWith(pod, func(pod *corev1.Pod) {
				pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "example.com/debug"}}}
			}).WithSubresource("ephemeralcontainers"))
		},
	}
}

// TestQuestions: what plugins may and may not ask the authorizer.
func TestQuestions(t *testing.T) {
	for name, test := range map[string]struct {
		plugin mutant
		says   string // empty: the plugin passes
	}{
		"no namespace":         {asks(func(q *authorizer.AttributesRecord) { q.Namespace = "" }), "about all namespaces"},
		"a fixed namespace":    {asks(func(q *authorizer.AttributesRecord) { q.Namespace = "default" }), `in another namespace: the plugin asks the authorizer "admissiontest label pods default/subject" for both`},
		"a fixed user":         {asks(func(q *authorizer.AttributesRecord) { q.User = &user.DefaultInfo{Name: "admissiontest"} }), `by another user: the plugin asks`},
		"a fixed name":         {asks(func(q *authorizer.AttributesRecord) { q.Name = "subject" }), "want \"admissiontest label pods default/contract-another"},
		"no name":              {asks(func(q *authorizer.AttributesRecord) { q.Name = "" }), "about all names"},
		"every verb":           {asks(func(q *authorizer.AttributesRecord) { q.Verb = "*" }), "no request has this verb"},
		"the operation":        {asks(func(q *authorizer.AttributesRecord) { q.Verb = "CREATE" }), "no request has this verb"},
		"a node in namespaces": {asks(func(q *authorizer.AttributesRecord) { q.Verb, q.Resource = "get", "nodes" }), "the resource is cluster-scoped"},
		"cached for all users": {remembers(func(q authorizer.AttributesRecord) string { return q.Verb + q.Namespace + q.Name }), "as a new plugin does"},
		"cached for all names": {remembers(func(q authorizer.AttributesRecord) string { return q.User.GetName() + q.Verb + q.Namespace }), "as a new plugin does"},
		"the parent":           {debugs(authorizer.AttributesRecord{Verb: "update"}), "another right"},

		"cached":             {remembers(func(q authorizer.AttributesRecord) string { return q.User.GetName() + q.Verb + q.Namespace + q.Name }), ""},
		"a virtual right":    {debugs(authorizer.AttributesRecord{Verb: "debug"}), ""},
		"a subresource":      {debugs(authorizer.AttributesRecord{Verb: "update", Subresource: "ephemeralcontainers"}), ""},
		"of its own group":   {asks(func(q *authorizer.AttributesRecord) { q.APIGroup, q.Namespace, q.Name = "sound.example.com", "", "" }), ""},
		"use of a namespace": {asks(func(q *authorizer.AttributesRecord) { q.Verb, q.Resource = "use", "priorityclasses" }), ""},
		"in its namespace":   {asks(func(q *authorizer.AttributesRecord) { q.Resource, q.Namespace = "configmaps", "kube-system" }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcomes, misuse := checkRules(test.plugin.of(), "F6")
			want := framework.Pass
			if test.says != "" {
				want = framework.Fail
			}
			if got := outcomes[0]; len(misuse) > 0 || got.Verdict != want || !strings.Contains(got.Reason, test.says) {
				t.Errorf("%s, want %s and %q in:\n%s\n%v", got.Verdict, want, test.says, got.Reason, misuse)
			}
		})
	}
}
