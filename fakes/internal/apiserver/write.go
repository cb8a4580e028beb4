package apiserver

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

// createLocked, updateLocked and deleteLocked carry out the request of a client. If dry is true,
// they store nothing, and return the object that they would
func (s *Server) createLocked(k *kinds.Kind, object runtime.Object, dry bool) (runtime.Object, error) {
	accessor := kinds.Metadata(object)
	if accessor.GetName() == "" {
		accessor.SetName(s.Store.GenerateName(k, accessor.GetNamespace(), accessor.GetGenerateName()))
	}
	if s.Store.Get(k, KeyOf(object)) != nil {
		return nil, apierrors.NewAlreadyExists(k.GVR.GroupResource(), accessor.GetName())
	}
	accessor.SetUID("")
	accessor.SetDeletionTimestamp(nil)
	accessor.SetDeletionGracePeriodSeconds(nil)
	if dry {
		s.Store.SetUID(object, nil)
		accessor.SetResourceVersion("")
		return object, nil
	}
	s.Store.Set(k, object)
	return object, nil
}

func (s *Server) updateLocked(k *kinds.Kind, object runtime.Object, dry bool) (runtime.Object, error) {
	accessor := kinds.Metadata(object)
	old := s.Store.Get(k, KeyOf(object))
	if old == nil {
		return nil, apierrors.NewNotFound(k.GVR.GroupResource(), accessor.GetName())
	}
	if err := fresh(k, kinds.Metadata(old), accessor.GetResourceVersion(), accessor.GetUID()); err != nil {
		return nil, err
	}
	if err := keepDeletion(k, kinds.Metadata(old), accessor); err != nil {
		return nil, err
	}
	s.Store.SetUID(object, old)
	accessor.SetResourceVersion(kinds.Metadata(old).GetResourceVersion())
	switch {
	case dry, equality.Semantic.DeepEqual(old, object): // as on a server, an update that changes nothing does not write
	case accessor.GetDeletionTimestamp() != nil && !hasFinalizers(object):
		s.Store.Remove(k, KeyOf(object))
	default:
		s.Store.Set(k, object)
	}
	return object, nil
}

// fresh returns a conflict if the resource version or UID in a write is not that of the stored
// object.
func fresh(k *kinds.Kind, stored metav1.Object, version string, uid types.UID) error {
	if version != "" && version != stored.GetResourceVersion() {
		return apierrors.NewConflict(k.GVR.GroupResource(), stored.GetName(),
			fmt.Errorf("the object has been modified: its resource version is %s, the request has %s", stored.GetResourceVersion(), version))
	}
	if uid != "" && uid != stored.GetUID() {
		return apierrors.NewConflict(k.GVR.GroupResource(), stored.GetName(),
			fmt.Errorf("precondition failed: the object has UID %s, the request has %s", stored.GetUID(), uid))
	}
	return nil
}
