package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/processes"
)

// Object names an object of the API server.
type Object struct {
	Resource  Resource
	Namespace string
	Name      string
	// Manager is the field manager of the requests that create or update it. Empty means that of the client.
	Manager string
	// UID identifies the object among those that have the name one after the other. Delete
	// deletes only the object with this UID, if it is not empty.
	UID types.UID
}

// String is RESOURCE.GROUP NAMESPACE/NAME.
func (o Object) String() string {
	text := o.Resource.GroupResource().String() + " "
	if o.Namespace != "" {
		text += o.Namespace + "/"
	}
	return text + o.Name
}

// Key is RESOURCE.GROUP/NAME, or RESOURCE.GROUP/NAMESPACE/NAME.
func (o Object) Key() string {
	if o.Namespace != "" {
		return o.Resource.GroupResource().String() + "/" + o.Namespace + "/" + o.Name
	}
	return o.Resource.GroupResource().String() + "/" + o.Name
}

// Namespace returns the Object of a namespace.
func Namespace(name string) Object {
	return Object{Resource: Resource{GroupVersionResource: Namespaces()}, Name: name}
}

func (c *Client) objects(res Resource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return c.dynamic.Resource(res.GroupVersionResource)
	}
	return c.dynamic.Resource(res.GroupVersionResource).Namespace(namespace)
}

func (c *Client) partialObjects(res Resource, namespace string) metadata.ResourceInterface {
	if namespace == "" {
		return c.metadata.Resource(res.GroupVersionResource)
	}
	return c.metadata.Resource(res.GroupVersionResource).Namespace(namespace)
}

// Create creates an object from a manifest, and the API server refuses fields that it does not know. If the response to an
// attempt was lost, the next one is refused because the object exists.
func (c *Client) Create(ctx context.Context, o Object, manifest map[string]any) (*unstructured.Unstructured, error) {
	created, err := c.objects(o.Resource, o.Namespace).Create(ctx, &unstructured.Unstructured{Object: manifest}, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, FieldManager: o.Manager})
	return created, failed("create", o, err)
}

// Get reads an object, or one of its subresources.
func (c *Client) Get(ctx context.Context, o Object, subresources ...string) (*unstructured.Unstructured, error) {
	found, err := c.objects(o.Resource, o.Namespace).Get(ctx, o.Name, metav1.GetOptions{}, subresources...)
	return found, failed("get", o, err)
}

// Update replaces an object, or one of its subresources, and returns it. Like Create, it is strict.
func (c *Client) Update(ctx context.Context, o Object, manifest map[string]any, subresources ...string) (*unstructured.Unstructured, error) {
	updated, err := c.objects(o.Resource, o.Namespace).Update(ctx, &unstructured.Unstructured{Object: manifest}, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict, FieldManager: o.Manager}, subresources...)
	return updated, failed("update", o, err)
}

// TryUpdate returns what an object would be after Update. It changes nothing.
func (c *Client) TryUpdate(ctx context.Context, o Object, manifest map[string]any) (*unstructured.Unstructured, error) {
	updated, err := c.objects(o.Resource, o.Namespace).Update(ctx, &unstructured.Unstructured{Object: manifest},
		metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}})
	return updated, failed("update (dry run)", o, err)
}

// Delete deletes an object at once: without grace period, and its dependents in the
// background. It is not an error if the object does not exist, or if another one has its
// name now.
func (c *Client) Delete(ctx context.Context, o Object) error {
	options := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground), GracePeriodSeconds: ptr.To[int64](0)}
	if o.UID != "" {
		options.Preconditions = &metav1.Preconditions{UID: &o.UID}
	}
	err := c.objects(o.Resource, o.Namespace).Delete(ctx, o.Name, options)
	if apierrors.IsNotFound(err) || o.UID != "" && apierrors.IsConflict(err) {
		return nil
	}
	return failed("delete", o, err)
}

// DeleteGracefully deletes an object with a grace period, which is that of its kind if seconds is nil.
func (c *Client) DeleteGracefully(ctx context.Context, o Object, seconds *int64) error {
	options := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground), GracePeriodSeconds: seconds}
	return failed("delete", o, c.objects(o.Resource, o.Namespace).Delete(ctx, o.Name, options))
}

// RemoveFinalizers removes the finalizers in an object's metadata. It is not an error
// if the object does not exist, or if another one has its name now.
func (c *Client) RemoveFinalizers(ctx context.Context, o Object) error {
	return failed("remove finalizers of", o, c.patchMetadata(ctx, o, map[string]any{"finalizers": nil}))
}

// Touch changes an annotation of an object, so that a controller that waits for a change of it receives an event. It
// is not an error if the object does not exist, or if another one has its name now.
func (c *Client) Touch(ctx context.Context, o Object) error {
	now := time.Now().UTC().Format(time.RFC3339Nano)
	return failed("touch", o, c.patchMetadata(ctx, o, map[string]any{"annotations": map[string]any{"admissiontest.dev/touched": now}}))
}

func (c *Client) patchMetadata(ctx context.Context, o Object, metadata map[string]any) error {
	if o.UID != "" {
		metadata["uid"] = o.UID
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	_, err = c.partialObjects(o.Resource, o.Namespace).Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) || o.UID != "" && (apierrors.IsConflict(err) || apierrors.IsInvalid(err)) {
		return nil
	}
	return err
}

// The limits of List.
const (
	pageSize   = 500
	maxObjects = 1_000_000
)

// List returns names, labels and finalizers of the objects of a resource: in one
// namespace, or everywhere if the namespace is empty. Without a limit in the options it reads all pages.
func (c *Client) List(ctx context.Context, res Resource, namespace string, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	objects, whole := c.partialObjects(res, namespace), options.Limit == 0
	if whole {
		options.Limit = pageSize
	}
	list, err := objects.List(ctx, options)
	for whole && err == nil && list.Continue != "" {
		if len(list.Items) > maxObjects {
			err = &LimitError{URL: c.Host() + URLPath(res.GroupVersionResource, namespace, "", ""), Limit: fmt.Sprintf("%d objects", maxObjects)}
			break
		}
		options.Continue = list.Continue
		var next *metav1.PartialObjectMetadataList
		next, err = objects.List(ctx, options)
		if apierrors.IsResourceExpired(err) { // the list changed too much between two pages
			return c.List(ctx, res, namespace, metav1.ListOptions{LabelSelector: options.LabelSelector, FieldSelector: options.FieldSelector, Limit: maxObjects})
		}
		if err == nil {
			list.Items, list.ListMeta = append(list.Items, next.Items...), next.ListMeta
		}
	}
	return list, failed("list", Object{Resource: res, Namespace: namespace}, err)
}

// ListObjects returns the objects of a resource in all namespaces.
func (c *Client) ListObjects(ctx context.Context, res Resource, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := c.dynamic.Resource(res.GroupVersionResource).List(ctx, options)
	return list, failed("list", Object{Resource: res}, err)
}

// named returns the object of a list that has a name, or nil: an API server can ignore a selector.
func named(list *unstructured.UnstructuredList, name string) *unstructured.Unstructured {
	for i := range list.Items {
		if list.Items[i].GetName() == name {
			return &list.Items[i]
		}
	}
	return nil
}

// failed describes an error of an administrative request.
func failed(verb string, o Object, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", verb, o, withNoResponse(err))
}

// withNoResponse marks an error that is not a response of the API server as a
// framework.ErrNoResponse. A LimitError is returned without what client-go says about it.
func withNoResponse(err error) error {
	if limit := (*LimitError)(nil); errors.As(err, &limit) {
		return limit
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %w", framework.ErrNoResponse, err)
}

// The intervals of Poll: for a state that takes milliseconds, and for one that takes
// up to a second.
const (
	Soon  = 5 * time.Millisecond
	Later = 25 * time.Millisecond
)

// lostLimit is how long Poll accepts that the API server does not respond: the restart of
// an API server.
const lostLimit = 15 * time.Second

// Poll calls done until it returns true or an error. A framework.ErrNoResponse only
// counts if it is returned for some time. After the limit the error is a
// framework.ErrTimeout. A pause of this process does not count.
func Poll(ctx context.Context, interval, limit time.Duration, done func() (bool, error)) error {
	var lostSince time.Time
	limited, cancel := processes.WithTimeout(ctx, limit)
	defer cancel()
	err := wait.PollUntilContextCancel(limited, interval, true, func(context.Context) (bool, error) {
		ok, err := done()
		if !errors.Is(err, framework.ErrNoResponse) {
			lostSince = time.Time{}
			return ok, err
		}
		if lostSince.IsZero() {
			lostSince = time.Now()
		}
		if time.Since(lostSince) < lostLimit {
			return false, nil
		}
		return false, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil && !errors.Is(err, framework.ErrNoResponse) {
		return fmt.Errorf("%w after %s", framework.ErrTimeout, limit)
	}
	return err
}

// refusedLimit limits how long WhileRefused repeats a request. The API server rereads
// policies every second.
const refusedLimit = 15 * time.Second

// WhileRefused repeats an administrative request while the API server refuses it: a
// policy or webhook that was deleted before can still be effective for a moment. It
// returns the last error.
func WhileRefused(ctx context.Context, request func() error) error {
	var refused error
	err := Poll(ctx, Later, refusedLimit, func() (bool, error) {
		refused = request()
		return refused == nil || errors.Is(refused, framework.ErrNoResponse), nil
	})
	if err == nil || refused != nil {
		return refused
	}
	return err
}
