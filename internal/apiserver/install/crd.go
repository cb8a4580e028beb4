package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// ErrDiffers marks an object of the cluster that another client created and that differs from the one
// to install.
var ErrDiffers = errors.New("the cluster has another CustomResourceDefinition of this name")

// installDefinition installs a CustomResourceDefinition, and waits until it is served. One that the API server has already
// is used if it is the same, or of a scenario that runs at the same time: see lanes of package engine.
func (i *Installer) installDefinition(ctx context.Context, scope *Scope, o client.Object, manifest map[string]any) error {
	i.definitions.Lock()
	used, err := i.useExisting(ctx, scope, o, manifest)
	if err == nil && !used {
		err = i.createDefinition(ctx, scope, o, manifest)
	}
	i.definitions.Unlock()
	if err != nil {
		return err
	}
	return i.waitUntilServed(ctx, manifest)
}

func (i *Installer) createDefinition(ctx context.Context, scope *Scope, o client.Object, manifest map[string]any) error {
	if i.NewCRD != nil {
		if err := i.NewCRD(scope.ID, manifest); err != nil {
			return err
		}
	}
	connected, err := i.connectConversion(manifest, scope.Conversion)
	if err != nil {
		return err
	}
	return i.createNoted(ctx, scope, o, connected)
}

// useExisting reports whether the API server has a CustomResourceDefinition already that the run uses unchanged. One
// that this run did not create is not removed. The error is an ErrDiffers if its spec differs from the manifest, apart
// from defaults of the API server and the caBundle of the conversion webhook.
func (i *Installer) useExisting(ctx context.Context, scope *Scope, o client.Object, manifest map[string]any) (bool, error) {
	current, err := i.Client.Get(ctx, o)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	run := RunOf(current)
	switch {
	case run == i.Run:
		return !scope.Open, nil // of a scenario that runs alone it is replaced
	case run != "":
		return false, fmt.Errorf("install %s: %w: run %s created it and will remove it: wait for its end, or remove it with `admissiontest cleanup --run %s`", o, ErrDiffers, run, run)
	case current.GetDeletionTimestamp() != nil:
		return false, fmt.Errorf("install %s: %w, which is being deleted: wait until it is gone", o, ErrDiffers)
	}
	wanted := maps.Clone(current.Object)
	wanted["apiVersion"], wanted["spec"] = manifest["apiVersion"], manifest["spec"]
	updated, err := i.Client.TryUpdate(ctx, o, wanted) // the API server sets defaults
	if err != nil {
		return false, fmt.Errorf("compare %s with the one of the cluster: %w", o, err)
	}
	for _, one := range []*unstructured.Unstructured{current, updated} {
		unstructured.RemoveNestedField(one.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle") // a controller can inject it
	}
	if !reflect.DeepEqual(current.Object["spec"], updated.Object["spec"]) {
		return false, fmt.Errorf("install %s: %w, which differs: update it, or remove it to install yours for the run; `kubectl diff` shows the difference", o, ErrDiffers)
	}
	return true, nil
}
