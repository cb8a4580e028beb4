package doctor

import (
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
	webhooks map[string]decision // by webhook.key
	policies []reach.Finding
	// unknown says why nothing is known about the request. Empty means that it is.
	unknown string
}

// decide asks package reach about a request.
func (w *world) decide(p probe) *decisions {
	if known := w.decided[p.key]; known != nil {
		return known
	}
	all := &decisions{webhooks: map[string]decision{}}
	w.decided[p.key] = all
	findings, err := w.admission.Effects(w.ctx, p.Request, w)
	if err != nil {
		all.unknown = "it is not known what is called for " + p.text + ": " + err.Error()
		return all
	}
	for _, f := range findings {
		if f.Webhook == "" {
			all.policies = append(all.policies, f)
			continue
		}
		d := decision{}
		switch f.Effect {
		case reach.EffectCalled:
			d.called = true
		default:
			d.unknown = f.Text
		}
		all.webhooks[f.Kind+" "+f.Name+" "+f.Webhook] = d
	}
	return all
}

// reaches reports whether a webhook is called for a request.
func (w *world) reaches(h *webhook, p probe) decision {
	all := w.decide(p)
	if all.unknown != "" {
		return decision{unknown: all.unknown}
	}
	d := all.webhooks[h.key()]
	namespace := p.Namespace
	if p.Resource.Resource == "namespaces" && p.Resource.Group == "" {
		namespace = p.Name
	}
	if d.called && namespace != "" && w.assumed(namespace) {
		if key := exemptsBy(h.NamespaceSelector); key != "" {
			return decision{unknown: "the labels of namespace " + namespace + " are not known: it can have the label " + key + ", by which the namespaceSelector exempts it"}
		}
	}
	return d
}

// exemptsBy returns the key of a label, other than the name of a namespace, by which a selector exempts namespaces.
func exemptsBy(selector *metav1.LabelSelector) string {
	for _, r := range requirements(selector) {
		if !optsIn(r) && r.Key != nameLabel {
			return r.Key
		}
	}
	return ""
}

// reached are the requests for which a webhook is called.
type reached struct {
	certain, possible []probe
	unknown           string // of the first possible one
}

// reachedOf returns the requests for which a webhook is called.
func (w *world) reachedOf(h *webhook, probes []probe) reached {
	var all reached
	for _, p := range probes {
		switch d := w.reaches(h, p); {
		case d.called:
			all.certain = append(all.certain, p)
		case d.unknown != "":
			if all.unknown == "" {
				all.unknown = d.unknown
			}
			all.possible = append(all.possible, p)
		}
	}
	return all
}

// requests returns the certain ones, or the possible ones if there are no others, and why they are not certain.
func (r reached) requests() (probes []probe, unknown string) {
	if len(r.certain) > 0 {
		return r.certain, ""
	}
	return r.possible, r.unknown
}
