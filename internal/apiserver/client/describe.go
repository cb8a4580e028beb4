package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/version"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/admissiontest/admissiontest/framework"
)

// Version returns the gitVersion of the API server. It repeats the request while the server is
// overloaded, but not if nothing listens there: the address can be wrong.
func (c *Client) Version(ctx context.Context) (string, error) {
	answer, err := c.version(ctx)
	if err != nil {
		return "", fmt.Errorf("reach API server at %s: %w", c.Host(), err)
	}
	if !answer.Allowed() {
		return "", fmt.Errorf("read version of API server at %s: %d %s: check the credentials", c.Host(), answer.Status.Code, answer.Status.Message)
	}
	var info version.Info
	data, err := json.Marshal(answer.Fields())
	if err == nil {
		err = json.Unmarshal(data, &info)
	}
	if err == nil && info.GitVersion == "" {
		err = errors.New("the response has no gitVersion")
	}
	if err != nil {
		return "", fmt.Errorf("read version of API server at %s: %w: is this a Kubernetes API server?", c.Host(), err)
	}
	return info.GitVersion, nil
}

// version reads the version of the API server. It repeats the request if the connection is closed
// without a response, or if the server is overloaded.
func (c *Client) version(ctx context.Context) (answer framework.Result, err error) {
	pause := c.begin()
	err = wait.ExponentialBackoffWithContext(ctx, pause, func(ctx context.Context) (bool, error) {
		var err error
		answer, err = c.Send(ctx, HTTPRequest{Method: http.MethodGet, Path: "/version"})
		pause.Steps--
		if pause.Steps > 0 && (utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err)) {
			return false, nil
		}
		return pause.Steps == 0 || !Overloaded(answer.Status.Code), err
	})
	return answer, err
}

// Ping returns an error if the API server does not respond. Any status is a response.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.version(ctx)
	return err
}

// Overloaded reports whether an API server responds with a code because it has too much to do.
func Overloaded(code int32) bool {
	switch code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

// Alive returns an error if the API server does not respond, or responds with a 5xx status: if it cannot read
// its storage, for instance. (An API server reads an object from the storage if the request has no
// resourceVersion.)
func (c *Client) Alive(ctx context.Context) error {
	answer, err := c.Send(ctx, HTTPRequest{Method: http.MethodGet, Path: "/api/v1/namespaces/default"})
	if err == nil && answer.Status.Code >= http.StatusInternalServerError {
		err = fmt.Errorf("read namespace default: %w: %d %s", framework.ErrNoResponse, answer.Status.Code, answer.Status.Message)
	}
	return err
}

// UserName returns the name of the user of this client, or "" if the API server does
// not return it.
func (c *Client) UserName(ctx context.Context) string { return c.User(ctx).Name }

// User returns the user of this client. It has no name if the API server does not return it.
func (c *Client) User(ctx context.Context) framework.User {
	reviews, err := authenticationclient.NewForConfigAndClient(c.config, c.http)
	if err != nil {
		return framework.User{}
	}
	review, err := reviews.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return framework.User{}
	}
	info := review.Status.UserInfo
	user := framework.User{Name: info.Username, UID: info.UID, Groups: info.Groups}
	for key, values := range info.Extra {
		if user.Extra == nil {
			user.Extra = map[string][]string{}
		}
		user.Extra[key] = values
	}
	return user
}

// HasControllers reports whether kube-controller-manager holds its Lease. It is false if the Lease
// cannot be read.
func (c *Client) HasControllers(ctx context.Context) bool {
	leases := Resource{GroupVersionResource: schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, Namespaced: true}
	list, err := c.objects(leases, "kube-system").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=kube-controller-manager"})
	if err != nil {
		return false
	}
	lease := named(list, "kube-controller-manager")
	if lease == nil {
		return false
	}
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	return holder != ""
}
