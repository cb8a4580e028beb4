package check

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/review"
)

// conversionLimit is how long an API server waits for a conversion webhook.
const conversionLimit = 30 * time.Second

// Version is a sample in another version of its kind.
type Version struct {
	Request reach.Request
	// SameFields is whether the API server converts it by changing only its apiVersion.
	SameFields bool
}

// InVersions returns a case in the other versions that the sample names, and in those whose objects differ only in their
// apiVersion.
func (t *T) InVersions(c Case) []Version {
	all := append([]Version{}, c.versions...)
	others, converter := t.Kinds.OtherVersions(c.Request.Kind)
	for _, name := range others {
		if converter != nil {
			break // by Convert
		}
		u := (&unstructured.Unstructured{Object: c.Request.Object}).DeepCopy()
		u.SetAPIVersion(schema.GroupVersion{Group: c.Request.Kind.Group, Version: name}.String())
		if r, err := t.Kinds.New(u.Object, review.OpCreate, ""); err == nil {
			r.User = c.Request.User
			all = append(all, Version{r, true})
		}
	}
	return all
}

// Convert has objects converted to a version by a conversion webhook. Ok is false if what is there answers with no ConversionReview.
func (t *T) Convert(converter map[string]any, version string, objects []map[string]any) (converted []map[string]any, ok bool, err error) {
	var config admissionregistrationv1.WebhookClientConfig
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(converter, &config); err != nil {
		return nil, false, err
	}
	path, err := pathOf(config)
	if err != nil {
		return nil, false, err
	}
	uid := NewUID()
	request := map[string]any{"uid": uid, "desiredAPIVersion": version, "objects": objects}
	body := Encode(map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request})
	got := t.endpoint.send(t.Context(), path, Raw{Path: path, Body: bytes.NewReader(body), Limit: conversionLimit})
	var review struct {
		Kind     string `json:"kind"`
		Response struct {
			UID     string           `json:"uid"`
			Objects []map[string]any `json:"convertedObjects"`
			Result  metav1.Status    `json:"result"`
		} `json:"response"`
	}
	if err := utiljson.Unmarshal(got.body, &review); got.err != nil || err != nil || review.Kind != "ConversionReview" {
		return nil, got.err != nil, cmp.Or(got.err, err, fmt.Errorf("body %q is no ConversionReview", short(got.body)))
	}
	converted, result := review.Response.Objects, review.Response.Result
	if got.status != http.StatusOK || review.Response.UID != uid || result.Status != metav1.StatusSuccess || len(converted) != len(objects) {
		const format = "got HTTP status %d, result %q %q, body %s; want 200, the uid of the request, the status Success, and %d objects"
		return nil, true, fmt.Errorf(format, got.status, result.Status, result.Message, short(got.body), len(objects))
	}
	for _, each := range converted {
		if each["apiVersion"] != version {
			return nil, true, fmt.Errorf("got an object with apiVersion %v, want %s", each["apiVersion"], version)
		}
	}
	return converted, true, nil
}

// CalledFor returns the webhook that gets a request, not converted: this one, or the only other one of its kind. Nil means that
// there is none.
func (t *T) CalledFor(r reach.Request) *Webhook {
	unconverted := cluster{reach.NewMapper(nil), t.cluster.namespaces}
	if effect, _ := t.effect(t.Context(), t.Webhook, r, unconverted); effect == reach.EffectCalled {
		return t.Webhook
	}
	var found *Webhook
	for _, w := range t.Webhooks {
		if effect, _ := t.effect(t.Context(), w, r, unconverted); effect != reach.EffectCalled || w.Kind != t.Kind {
			continue
		}
		if found != nil {
			return nil
		}
		found = w
	}
	return found
}

// DecideBy is Decide for another webhook of the Subject.
func (t *T) DecideBy(w *Webhook, r reach.Request) (Decision, bool) {
	return t.decided(Describe(r), w.inPhase(r).Object, t.Send(t.Context(), w, r))
}

// patched applies a patch, and sets the defaults of a CustomResourceDefinition, as an API server does after each webhook.
func (p *Prepared) patched(fields map[string]any, patch []byte) (map[string]any, error) {
	result, err := applyPatch(fields, patch)
	if err != nil {
		return nil, err
	}
	return p.Kinds.Defaulted(result), nil
}
