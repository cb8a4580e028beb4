package handlers

import (
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func ingress(class string, hosts ...string) *networkingv1.Ingress {
	one := &networkingv1.Ingress{}
	if class != "" {
		one.Spec.IngressClassName = &class
	}
	for _, host := range hosts {
		one.Spec.Rules = append(one.Spec.Rules, networkingv1.IngressRule{Host: host})
	}
	return one
}

func TestDefault(t *testing.T) {
	one := ingress("", "Shop.example.com", "shop.example.com", "")
	for range 2 {
		if err := (Defaulter{}).Default(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		if class(one) != DefaultClass || one.Spec.Rules[0].Host != "shop.example.com" {
			t.Errorf("got class %q and host %q", class(one), one.Spec.Rules[0].Host)
		}
		if len(one.Spec.TLS) != 1 || one.Spec.TLS[0].SecretName != "shop-example-com-tls" {
			t.Errorf("got TLS %v, want one section", one.Spec.TLS)
		}
	}
}

func TestValidate(t *testing.T) {
	v := Validator{Domain: "example.com"}
	for host, allowed := range map[string]bool{"example.com": true, "a.b.example.com": true, "badexample.com": false, "example.org": false, "": false} {
		t.Run(host, func(t *testing.T) {
			if _, err := v.ValidateCreate(t.Context(), ingress("", host)); (err == nil) != allowed {
				t.Errorf("host %q: got %v, want allowed %t", host, err, allowed)
			}
		})
	}
	if _, err := v.ValidateUpdate(t.Context(), ingress("public"), ingress("internal")); !apierrors.IsInvalid(err) {
		t.Errorf("another class: got %v, want Invalid", err)
	}
	legacy := ingress("")
	legacy.Annotations = map[string]string{legacyClass: "old", Protected: "true"}
	if got, err := v.ValidateUpdate(t.Context(), legacy, legacy); err != nil || !slices.ContainsFunc(got, func(text string) bool { return strings.Contains(text, legacyClass) }) {
		t.Errorf("annotation: got %q, %v; want a warning", got, err)
	}
	if _, err := v.ValidateDelete(t.Context(), legacy); err == nil {
		t.Error("a protected Ingress can be deleted")
	}
	if _, err := v.ValidateDelete(t.Context(), ingress("")); err != nil {
		t.Errorf("delete: %v", err)
	}
}
