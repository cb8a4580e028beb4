// Package handlers has the webhooks of ingress-guard. They set defaults of Ingresses, and refuse
// those that a cluster with several teams must not have.
package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// DefaultClass is the class of Ingresses without a class.
const DefaultClass = "public"

// Protected is the annotation that prevents the deletion of an Ingress.
const Protected = "ingress-guard.example.com/protected"

// legacyClass is the annotation that named the class before spec.ingressClassName existed.
const legacyClass = "kubernetes.io/ingress.class"

// Defaulter sets defaults of Ingresses. It is idempotent.
type Defaulter struct{}

// Default sets a missing class, converts hosts to lower case, and adds a TLS section for each
// host that has none.
func (Defaulter) Default(_ context.Context, ingress *networkingv1.Ingress) error {
	if ingress.Spec.IngressClassName == nil && ingress.Annotations[legacyClass] == "" {
		ingress.Spec.IngressClassName = new(DefaultClass)
	}
	for i := range ingress.Spec.Rules {
		rule := &ingress.Spec.Rules[i]
		rule.Host = strings.ToLower(rule.Host)
		covered := slices.ContainsFunc(ingress.Spec.TLS, func(tls networkingv1.IngressTLS) bool { return slices.Contains(tls.Hosts, rule.Host) })
		if rule.Host != "" && !covered {
			ingress.Spec.TLS = append(ingress.Spec.TLS, networkingv1.IngressTLS{
				Hosts: []string{rule.Host}, SecretName: strings.ReplaceAll(rule.Host, ".", "-") + "-tls",
			})
		}
	}
	return nil
}

// Validator refuses Ingresses that a cluster with several teams must not have.
type Validator struct {
	// Domain is the domain in which all hosts must be: "example.com".
	Domain string
}

// ValidateCreate refuses hosts outside of the domain, with 403, and returns a warning for the
// deprecated annotation.
func (v Validator) ValidateCreate(_ context.Context, ingress *networkingv1.Ingress) (admission.Warnings, error) {
	return warnings(ingress), v.hosts(ingress, nil)
}

// ValidateUpdate refuses hosts outside of the domain that the old Ingress does not have: it can be older than this
// webhook. It also refuses a change of the class, with 422: the controller of the old class would not release the
// Ingress. It refuses nothing while the Ingress is deleted, so that controllers can remove their finalizers.
func (v Validator) ValidateUpdate(_ context.Context, was, ingress *networkingv1.Ingress) (admission.Warnings, error) {
	if ingress.DeletionTimestamp != nil {
		return nil, nil
	}
	if class(was) != class(ingress) {
		path := field.NewPath("spec", "ingressClassName")
		return nil, apierrors.NewInvalid(networkingv1.SchemeGroupVersion.WithKind("Ingress").GroupKind(), ingress.Name, field.ErrorList{
			field.Invalid(path, class(ingress), fmt.Sprintf("must stay %q: create another Ingress", class(was))),
		})
	}
	return warnings(ingress), v.hosts(ingress, was)
}

// ValidateDelete refuses to delete a protected Ingress, with 403.
func (Validator) ValidateDelete(_ context.Context, ingress *networkingv1.Ingress) (admission.Warnings, error) {
	if ingress.Annotations[Protected] == "true" {
		return nil, fmt.Errorf("it is protected: remove the annotation %s first", Protected)
	}
	return nil, nil
}

// hosts refuses hosts outside of the domain that the old Ingress does not have, all in one error.
func (v Validator) hosts(ingress, was *networkingv1.Ingress) error {
	var errs []error
	for _, rule := range ingress.Spec.Rules {
		old := was != nil && slices.ContainsFunc(was.Spec.Rules, func(other networkingv1.IngressRule) bool { return other.Host == rule.Host })
		if !old && rule.Host != v.Domain && !strings.HasSuffix(rule.Host, "."+v.Domain) {
			errs = append(errs, fmt.Errorf("host %q is not under %s", rule.Host, v.Domain))
		}
	}
	return errors.Join(errs...)
}

func warnings(ingress *networkingv1.Ingress) admission.Warnings {
	if ingress.Annotations[legacyClass] == "" {
		return nil
	}
	return admission.Warnings{"annotation " + legacyClass + " is deprecated: set spec.ingressClassName"}
}

func class(ingress *networkingv1.Ingress) string {
	if name := ingress.Spec.IngressClassName; name != nil {
		return *name
	}
	return ingress.Annotations[legacyClass]
}
