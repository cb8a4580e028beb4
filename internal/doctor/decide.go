package doctor

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework/reach"
)

// decision says whether a webhook is called for a request. The zero value means that it is not called.
type decision struct {
	called bool
	// unknown says why it is not certain that the webhook is called.
	unknown string
}

// possible reports whether the webhook may be called.
func (d decision) possible() bool { return d.called || d.unknown != "" }

// decisions are what package reach says about one request.
type decisions struct {
	findings []reach.Finding
	// unknown says why nothing is known about the request. Empty means that it is.
	unknown string
}

// decide asks package reach about a request.
func (w *world) decide(p probe) *decisions {
	if known := w.decided[p.key]; known != nil {
		return known
	}
	findings, err := w.admission.Effects(w.ctx, p.Request, w)
	all := &decisions{findings: findings}
	if err != nil {
		all.unknown = "it is not known what is called for " + p.text + ": " + err.Error()
	}
	w.decided[p.key] = all
	return all
}

// reaches reports whether a webhook is called for a request.
func (w *world) reaches(h *webhook, p probe) decision {
	all := w.decide(p)
	at := slices.IndexFunc(all.findings, func(f reach.Finding) bool {
		return f.Webhook == h.Name && f.Name == h.configuration.GetName() && f.Kind == h.configuration.GetKind()
	})
	switch {
	case at < 0:
		return decision{unknown: all.unknown}
	case all.findings[at].Effect != reach.EffectCalled:
		return decision{unknown: all.findings[at].Text}
	}
	if namespace, key := p.selected(), exemptsBy(h.NamespaceSelector, p.selected()); key != "" && namespace != "" && w.assumed(namespace) {
		return decision{unknown: "the labels of namespace " + namespace + " are not known: it can have the label " + key + ", by which the namespaceSelector exempts it"}
	}
	return decision{called: true}
}

// exemptsBy returns the key of a label, other than the name of a namespace, by which a selector can exempt a namespace. Kubernetes makes
// the system namespaces. They have no values of a project, but may have values of a distribution.
func exemptsBy(selector *metav1.LabelSelector, namespace string) string {
	system := slices.Contains([]string{kubeSystem, nodeLeases, metav1.NamespaceDefault}, namespace)
	for _, r := range requirements(selector) {
		own := r.Operator == metav1.LabelSelectorOpNotIn && !strings.Contains(r.Key, "kubernetes.io/") && !strings.Contains(r.Key, "k8s.io/") && !strings.Contains(r.Key, "openshift.io/")
		if !optsIn(r) && r.Key != nameLabel && (!system || !own) {
			return r.Key
		}
	}
	return ""
}

// reached returns the requests for which a webhook is called. If there are none, it returns those for which it may be called, and why
// that of the first is not certain.
func (w *world) reached(h *webhook, probes []probe) (called []probe, unknown string) {
	var possible []probe
	for _, p := range probes {
		d := w.reaches(h, p)
		if d.called {
			called = append(called, p)
		} else if d.unknown != "" {
			possible = append(possible, p)
			unknown = cmp.Or(unknown, d.unknown)
		}
	}
	if len(called) > 0 {
		return called, ""
	}
	return possible, unknown
}
