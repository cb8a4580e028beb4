package fakes_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The World's authorizer responds to reviews of access. Nothing is stored.
func TestAccessReviews(t *testing.T) {
	allowed := fakes.Deny().Unless("joe", "get", "pods/log").Unless("joe", "get", "/healthz").Unless("system:apiserver", "list", "pods")
	w := fakes.NewWorld(t, fakes.WithAuthorizer(allowed))
	client, ctx := w.Client().AuthorizationV1(), t.Context()
	logs := &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "log", Namespace: "default"}
	subject := func(user string, at *authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, UID: "7", Groups: []string{"g"}, Extra: map[string]authorizationv1.ExtraValue{"e": {"v"}}, ResourceAttributes: at,
		}}
		got, err := client.SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return must(t, got, err).Status
	}
	if got := subject("joe", logs); !got.Allowed || got.Denied || got.Reason == "" {
		t.Errorf("got %v for joe, want it allowed, with a reason", got)
	}
	asked := allowed.Requests()[0]
	want := []any{"joe", "7", []string{"g"}, map[string][]string{"e": {"v"}}, "get", "default", "", "*", "pods", "log", true}
	if diff := cmp.Diff(want, []any{
		asked.User.GetName(), asked.User.GetUID(), asked.User.GetGroups(), asked.User.GetExtra(), asked.Verb, asked.Namespace,
		asked.APIGroup, asked.APIVersion, asked.Resource, asked.Subresource, asked.ResourceRequest,
	}); diff != "" {
		t.Errorf("the authorizer was asked (-want +got):\n%s", diff)
	}
	if got := subject("eve", logs); got.Allowed || got.Denied {
		t.Errorf("got %v for eve, want it neither allowed nor denied", got)
	}
	path, err := client.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "joe", NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/healthz", Verb: "get"},
	}}, metav1.CreateOptions{})
	if !must(t, path, err).Status.Allowed {
		t.Errorf("got %v for a path, want it allowed", path.Status)
	}
	local, err := client.LocalSubjectAccessReviews("default").Create(ctx, &authorizationv1.LocalSubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: "joe", ResourceAttributes: logs},
	}, metav1.CreateOptions{})
	if !must(t, local, err).Status.Allowed {
		t.Errorf("got %v for a local review, want it allowed", local.Status)
	}
	allowed.FailWith(errors.New("no answer"))
	if got := subject("joe", logs); got.Allowed || got.EvaluationError != "no answer" {
		t.Errorf("got %v, want the error of the authorizer", got)
	}
	if calls := w.Calls(); !calls.Has("create", "subjectaccessreviews") || len(calls.Writes()) != 0 || len(w.Objects()) != 0 {
		t.Errorf("got %v and objects %v, want reviews recorded as no writes", calls, w.Objects())
	}
}

// A review of the client itself is one of the API server, or of the user that it impersonates.
func TestSelfAccessReviews(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithAuthorizer(fakes.Deny().Unless("joe", "get", "pods").Unless("system:apiserver", "list", "pods")))
	config := w.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: "joe"}
	joe, err := kubernetes.NewForConfig(config)
	must(t, joe, err)
	for _, test := range []struct {
		client kubernetes.Interface
		verb   string
		want   bool
	}{{w.Client(), "list", true}, {w.Client(), "get", false}, {joe, "get", true}, {joe, "list", false}} {
		t.Run(fmt.Sprintf("%s by joe=%t", test.verb, test.client == joe), func(t *testing.T) {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: test.verb, Resource: "pods"},
			}}
			got, err := test.client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
			if must(t, got, err).Status.Allowed != test.want {
				t.Errorf("%s by joe=%t: got %v, want allowed=%t", test.verb, test.client == joe, got.Status, test.want)
			}
		})
	}
}

func TestRefusedReviews(t *testing.T) {
	client, ctx := fakes.NewWorld(t).Client().AuthorizationV1(), t.Context()
	at := &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"}
	for what, err := range map[string]error{
		"nothing":           second(client.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "joe"}}, metav1.CreateOptions{})),
		"nobody":            second(client.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: at}}, metav1.CreateOptions{})),
		"another namespace": second(client.LocalSubjectAccessReviews("default").Create(ctx, &authorizationv1.LocalSubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "joe", ResourceAttributes: at}}, metav1.CreateOptions{})),
	} {
		if !apierrors.IsInvalid(err) {
			t.Errorf("a review about %s: got %v, want it invalid", what, err)
		}
	}
}

// Reviews that are not about authorization get no answer.
func TestOtherReviews(t *testing.T) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "t"}}
	got, err := fakes.NewWorld(t).Client().AuthenticationV1().TokenReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if must(t, got, err).Spec.Token != "t" || got.Status.Authenticated {
		t.Errorf("got %v, want it back without an answer", got)
	}
}

// The Initializer and the reviews have the same authorizer.
func TestInitializerGivesTheAuthorizerOfTheWorld(t *testing.T) {
	deny := fakes.Deny()
	w := fakes.NewWorld(t, fakes.WithAuthorizer(deny))
	plugin := &wantsAuthorizer{}
	initializer := fakes.NewInitializer(w)
	initializer.Initialize(plugin)
	if err := initializer.Err(); err != nil || plugin.got != authorizer.Authorizer(deny) || w.Authorizer() != authorizer.Authorizer(deny) {
		t.Errorf("the plugin got %v, %v, want the authorizer of the World", plugin.got, err)
	}
}

type wantsAuthorizer struct{ got authorizer.Authorizer }

func (*wantsAuthorizer) Handles(admission.Operation) bool          { return true }
func (*wantsAuthorizer) ValidateInitialization() error             { return nil }
func (p *wantsAuthorizer) SetAuthorizer(got authorizer.Authorizer) { p.got = got }
