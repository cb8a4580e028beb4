package installed

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver"
)

// Server sends samples to an API server as dry runs.
type Server struct {
	// Namespace is the namespace of the run, as it is on the API server.
	Namespace map[string]any
	// User is the user of the dry runs. The zero value means that the API server does not say it.
	User framework.User
	// Version is the version of the API server.
	Version string

	target *apiserver.Target
}

// Open creates a namespace. Close removes it, also after an error. The error is an ErrRight, or comes from the API server.
func Open(ctx context.Context, config *rest.Config) (*Server, error) {
	target, err := apiserver.New(ctx, apiserver.Options{Config: config})
	if err != nil {
		return &Server{}, err
	}
	s := &Server{target: target, Version: target.Info().ServerVersion}
	id := "at-" + target.RunID() + "-contract"
	if _, err := target.NewSandbox(ctx, apiserver.SandboxOptions{ID: id}); err != nil {
		return s, rightsMissing(err, `{apiGroups: [""], resources: [namespaces, configmaps], verbs: [get, list, create, update, delete]}`)
	}
	read, err := s.send(ctx, framework.Request{Verb: framework.VerbGet, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Name: id})
	if err != nil {
		return s, err
	}
	s.Namespace = read
	review := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}
	if who, err := s.send(ctx, framework.Request{Verb: framework.VerbCreate, Kind: review.GroupVersionKind(), Object: review}); err == nil {
		s.User = userOf(who)
	}
	return s, nil
}

// userOf returns the user in a SelfSubjectReview.
func userOf(review map[string]any) framework.User {
	var read struct {
		Status struct {
			UserInfo struct {
				Username, UID string
				Groups        []string
				Extra         map[string][]string
			}
		}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(review, &read); err != nil {
		return framework.User{}
	}
	of := read.Status.UserInfo
	return framework.User{Name: of.Username, UID: of.UID, Groups: of.Groups, Extra: of.Extra}
}

// DryRun sends the creation of an object as a dry run, and changes the object to what the API server returns. The error is that of
// the API server.
func (s *Server) DryRun(ctx context.Context, object *unstructured.Unstructured) error {
	returned, err := s.send(ctx, framework.Request{
		Verb: framework.VerbCreate, Kind: object.GroupVersionKind(), Namespace: object.GetNamespace(), Name: object.GetName(), Object: object.DeepCopy(), DryRun: true,
	})
	if err == nil {
		object.Object = returned
	}
	return err
}

// send sends a request, and returns the object in the response.
func (s *Server) send(ctx context.Context, request framework.Request) (map[string]any, error) {
	result, err := s.target.Do(ctx, request)
	switch {
	case err != nil:
		return nil, err
	case !result.Allowed():
		return nil, fmt.Errorf("%s %s: %w", request.Verb, request.Kind.Kind, &apierrors.StatusError{ErrStatus: result.Status})
	case result.Fields() == nil:
		return nil, errors.New("the response has no object")
	}
	return result.Fields(), nil
}

// Close removes what Open created, and waits until it is gone.
func (s *Server) Close(ctx context.Context) error {
	if s.target == nil {
		return nil
	}
	return s.target.Close(ctx)
}
