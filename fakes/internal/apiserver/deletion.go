package apiserver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

// deleteLocked carries out the request of a client. An object with finalizers stays, with a
// deletion timestamp: pending is then this object, otherwise nil. If dry is true, deleteLocked
// stores nothing. See https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/
func (s *Server) deleteLocked(k *kinds.Kind, at Key, options metav1.DeleteOptions, dry bool) (pending runtime.Object, err error) {
	old := s.Store.Get(k, at)
	if old == nil {
		return nil, apierrors.NewNotFound(k.GVR.GroupResource(), at.Name)
	}
	if err := preconditions(k, kinds.Metadata(old), options.Preconditions); err != nil {
		return nil, err
	}
	object := old.DeepCopyObject()
	accessor := kinds.Metadata(object)
	finalizers := withPropagation(accessor.GetFinalizers(), options)
	accessor.SetFinalizers(finalizers)
	if !hasFinalizers(object) {
		if !dry {
			s.Store.Remove(k, at)
		}
		return nil, nil
	}
	if accessor.GetDeletionTimestamp() != nil && slices.Equal(finalizers, kinds.Metadata(old).GetFinalizers()) {
		return old, nil
	}
	if accessor.GetDeletionTimestamp() == nil {
		now, grace := metav1.Now().Rfc3339Copy(), int64(0)
		accessor.SetDeletionTimestamp(&now)
		accessor.SetDeletionGracePeriodSeconds(&grace)
	}
	if ns, ok := object.(*corev1.Namespace); ok {
		ns.Status.Phase = corev1.NamespaceTerminating
	}
	if !dry {
		s.Store.Set(k, object)
	}
	return object, nil
}

func preconditions(k *kinds.Kind, stored metav1.Object, conditions *metav1.Preconditions) error {
	if conditions == nil {
		return nil
	}
	var version string
	var uid types.UID
	if conditions.ResourceVersion != nil {
		version = *conditions.ResourceVersion
	}
	if conditions.UID != nil {
		uid = *conditions.UID
	}
	return fresh(k, stored, version, uid)
}

// withPropagation returns the finalizers of an object for a delete with these options: the options
// can add or remove the finalizers orphan and foregroundDeletion. In a cluster, the garbage
// collector removes these two.
func withPropagation(finalizers []string, options metav1.DeleteOptions) []string {
	var demanded []string
	orphan := options.OrphanDependents //nolint:staticcheck // clients still send it
	switch policy := options.PropagationPolicy; {
	case orphan != nil && *orphan, policy != nil && *policy == metav1.DeletePropagationOrphan:
		demanded = []string{metav1.FinalizerOrphanDependents}
	case policy != nil && *policy == metav1.DeletePropagationForeground:
		demanded = []string{metav1.FinalizerDeleteDependents}
	case orphan == nil && policy == nil:
		return finalizers
	}
	others := slices.DeleteFunc(slices.Clone(finalizers), func(name string) bool {
		return name == metav1.FinalizerOrphanDependents || name == metav1.FinalizerDeleteDependents
	})
	return append(others, demanded...)
}

// hasFinalizers reports whether an object has finalizers. A namespace also has finalizers in its
// spec.
func hasFinalizers(object runtime.Object) bool {
	if ns, ok := object.(*corev1.Namespace); ok && len(ns.Spec.Finalizers) > 0 {
		return true
	}
	return len(kinds.Metadata(object).GetFinalizers()) > 0
}

// keepDeletion keeps the deletion timestamp in an update, and returns an error if the update sets
// one, or adds a finalizer to an object in deletion.
func keepDeletion(k *kinds.Kind, old, updated metav1.Object) error {
	at := field.NewPath("metadata")
	var wrong field.ErrorList
	if old.GetDeletionTimestamp() != nil {
		updated.SetDeletionTimestamp(old.GetDeletionTimestamp())
		updated.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
		wrong = validation.ValidateNoNewFinalizers(updated.GetFinalizers(), old.GetFinalizers(), at.Child("finalizers"))
	} else {
		wrong = validation.ValidateImmutableField(updated.GetDeletionTimestamp(), old.GetDeletionTimestamp(), at.Child("deletionTimestamp"))
	}
	if len(wrong) > 0 {
		return apierrors.NewInvalid(k.GVK.GroupKind(), updated.GetName(), wrong)
	}
	return nil
}
