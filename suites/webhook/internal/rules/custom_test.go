package rules_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/rules"
)

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              zone: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}
              color: {type: string, default: blue}
  - name: v1beta1
    served: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const widgetWebhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: widgets}
webhooks:
- name: widgets.example.com
  clientConfig: {service: {namespace: a, name: a, path: /widgets}}
  admissionReviewVersions: [v1]
  sideEffects: None
  rules: [{operations: [CREATE, UPDATE], apiGroups: [example.com], apiVersions: [v1, v1beta1], resources: [widgets]}]
`

func manifest(t *testing.T, text string) check.Manifest {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return check.Manifest{Object: &unstructured.Unstructured{Object: fields}}
}

// TestCustomResources: the CustomResourceDefinition of a sample gives its defaults, its immutable fields and its other versions.
func TestCustomResources(t *testing.T) {
	type fields = map[string]any
	label := func(path, value string) []fields { return []fields{{"op": "add", "path": path, "value": value}} }
	deniesOld := func(in incoming, _ fields) (string, []fields) {
		if in.object["apiVersion"] == "example.com/v1beta1" {
			return "v1beta1 is too old", nil
		}
		return "", nil
	}
	for name, test := range map[string]struct {
		answer func(in incoming, spec fields) (denied string, patch []fields)
		id     string
		want   framework.Verdict
	}{
		"needs the default": {func(_ incoming, spec fields) (string, []fields) {
			if spec["color"] != "blue" {
				return "the color is " + spec["color"].(string), nil
			}
			return "", nil
		}, "WH-VERDICT-1", framework.Pass},
		"keeps the zone": {func(in incoming, _ fields) (string, []fields) {
			if in.operation == "UPDATE" {
				return "", label("/spec/color", "red")
			}
			return "", nil
		}, "WH-UPDATE-4", framework.Pass},
		"changes the zone": {func(in incoming, _ fields) (string, []fields) {
			if in.operation == "UPDATE" {
				return "", label("/spec/zone", "b")
			}
			return "", nil
		}, "WH-UPDATE-4", framework.Fail},
		"same in both versions":       {func(incoming, fields) (string, []fields) { return "", label("/spec/color", "red") }, "WH-VERSION-1", framework.Pass},
		"denies a version":            {deniesOld, "WH-VERSION-1", framework.Fail},
		"is not called for a version": {deniesOld, "WH-VERSION-1", framework.Pass},
		"tells an annotation": {func(in incoming, _ fields) (string, []fields) {
			u := unstructured.Unstructured{Object: in.object}
			return u.GetAnnotations()["contract.example.com/secret"], nil
		}, "WH-SEC-4", framework.Fail},
		"mutates one version": {func(in incoming, _ fields) (string, []fields) {
			if in.object["apiVersion"] == "example.com/v1beta1" {
				return "", label("/spec/color", "red")
			}
			return "", nil
		}, "WH-VERSION-1", framework.Fail},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := widgetWebhook
			if name == "is not called for a version" {
				configuration = strings.Replace(configuration, "[v1, v1beta1]", "[v1]", 1)
			}
			s := check.Subject{
				Name: "widgets", Configurations: []check.Manifest{manifest(t, widgets), manifest(t, configuration)},
				Allow: []check.Sample{{Manifest: manifest(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: b, annotations: null}, spec: {zone: a}}")}},
			}
			s.Handler = answers(test.answer)
			if o := checkOne(t, s, test.id, rule.DefaultBudget); o.Verdict != test.want {
				t.Errorf("%s: got %s (%s), want %s", test.id, o.Verdict, o.Reason, test.want)
			}
		})
	}
}

// answers serves the webhook of widgets.
func answers(answer func(in incoming, spec map[string]any) (denied string, patch []map[string]any)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		_ = json.NewDecoder(r.Body).Decode(&review)
		in := incoming{}
		in.request, _ = review["request"].(map[string]any)
		in.object, _ = in.request["object"].(map[string]any)
		in.old, _ = in.request["oldObject"].(map[string]any)
		in.operation, _ = in.request["operation"].(string)
		spec, _ := in.object["spec"].(map[string]any)
		denied, patch := answer(in, spec)
		out := &outgoing{apiVersion: "admission.k8s.io/v1", response: map[string]any{"uid": in.request["uid"], "allowed": true}, patch: patch}
		if denied != "" {
			out.deny(403, denied)
		}
		out.write(w)
	})
}

// TestUpdates: WH-UPDATE-5 sends what the CustomResourceDefinition lets change, and removes a field that no webhook lets change.
func TestUpdates(t *testing.T) {
	sample := func(spec, fix string) check.Sample {
		return check.Sample{Manifest: manifest(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: b}, spec: {"+spec+"}}"), Fix: fix}
	}
	change := sample("tier: gold, zone: a", "")
	change.Operation, change.Old = "UPDATE", sample("tier: basic, zone: a", "").Manifest
	for name, test := range map[string]struct {
		reject check.Sample
		denies func(in incoming, old, is any) bool // the values of spec.tier
		want   framework.Verdict
	}{
		"always":              {sample("tier: bad", `[{op: replace, path: /spec/tier, value: good}]`), func(_ incoming, _, is any) bool { return is == "bad" }, framework.Pass},
		"only new ones":       {sample("tier: bad", `[{op: replace, path: /spec/tier, value: good}]`), func(in incoming, _, is any) bool { return is == "bad" && in.old == nil }, framework.Fail},
		"an immutable field":  {sample("tier: bad, zone: a", `[{op: replace, path: /spec/zone, value: b}, {op: remove, path: /spec/tier}]`), func(in incoming, _, is any) bool { return is == "bad" && in.old == nil }, framework.Unsupported},
		"immutable":           {change, func(in incoming, old, is any) bool { return in.old != nil && is != old }, framework.Pass},
		"immutable until set": {change, func(in incoming, old, is any) bool { return in.old != nil && is != nil && is != old }, framework.Fail},
		"one direction":       {change, func(_ incoming, old, is any) bool { return old == "basic" && is == "gold" }, framework.Unsupported},
	} {
		t.Run(name, func(t *testing.T) {
			definition := strings.Replace(widgets, "color:", "tier: {type: string}\n              color:", 1)
			s := check.Subject{Name: "widgets", Configurations: []check.Manifest{manifest(t, definition), manifest(t, widgetWebhook)}, Reject: []check.Sample{test.reject}}
			s.Handler = answers(func(in incoming, spec map[string]any) (string, []map[string]any) {
				old, _, _ := unstructured.NestedFieldNoCopy(in.old, "spec", "tier")
				if test.denies(in, old, spec["tier"]) {
					return "the tier is bad", nil
				}
				return "", nil
			})
			if o := checkOne(t, s, "WH-UPDATE-5", rule.DefaultBudget); o.Verdict != test.want {
				t.Errorf("got %s (%s), want %s", o.Verdict, o.Reason, test.want)
			}
		})
	}
}

// TestConversions: a conversion webhook that loses something, or converts only one object, breaks the rule. What is at the path of a Subject
// without one is no verdict.
func TestConversions(t *testing.T) {
	type fields = map[string]any
	converted := strings.Replace(widgets, "  versions:\n", "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: a, name: a, path: /convert}}}}\n  versions:\n", 1)
	for name, test := range map[string]struct {
		convert func(u *unstructured.Unstructured, i int)
		want    framework.Verdict
	}{
		"sound": {func(u *unstructured.Unstructured, _ int) {
			u.SetAnnotations(map[string]string{"converted": "yes"})
			u.SetResourceVersion("") // an API server keeps it
		}, framework.Pass},
		"loses a field": {func(u *unstructured.Unstructured, _ int) { unstructured.RemoveNestedField(u.Object, "spec", "size") }, framework.Fail},
		"rounds a number": {func(u *unstructured.Unstructured, _ int) {
			_ = unstructured.SetNestedField(u.Object, float64(1<<53), "spec", "size")
		}, framework.Fail},
		"loses the labels":     {func(u *unstructured.Unstructured, _ int) { u.SetLabels(nil) }, framework.Fail},
		"loses the uid":        {func(u *unstructured.Unstructured, _ int) { u.SetUID("") }, framework.Fail},
		"keeps the version":    {func(u *unstructured.Unstructured, _ int) { u.SetAPIVersion("example.com/v1") }, framework.Fail},
		"repeats the first":    {func(u *unstructured.Unstructured, _ int) { u.SetName("a") }, framework.Fail},
		"fails for the second": {func(_ *unstructured.Unstructured, i int) { panic(fmt.Sprint(i)) }, framework.Fail},
		"answers with 500":     {func(*unstructured.Unstructured, int) {}, framework.Fail},
		"no conversion":        {nil, framework.Inconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			s := check.Subject{
				Name: "widgets", Configurations: []check.Manifest{manifest(t, converted), manifest(t, widgetWebhook)},
				Allow: []check.Sample{{Manifest: manifest(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: b, labels: {a: b}}, spec: {zone: a, size: 5}}")}},
			}
			s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				var review struct {
					Request struct {
						UID               string
						DesiredAPIVersion string
						Objects           []json.RawMessage
					}
				}
				if _ = json.Unmarshal(body, &review); r.URL.Path != "/convert" || test.convert == nil {
					fmt.Fprintf(w, `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": %q, "allowed": true}}`, review.Request.UID)
					return
				}
				var all []any
				for i, each := range review.Request.Objects {
					u := &unstructured.Unstructured{}
					_ = u.UnmarshalJSON(each)
					u.SetAPIVersion(review.Request.DesiredAPIVersion)
					test.convert(u, i)
					all = append(all, u.Object)
				}
				if name == "answers with 500" {
					w.WriteHeader(http.StatusInternalServerError)
				}
				_ = json.NewEncoder(w).Encode(fields{"kind": "ConversionReview", "response": fields{"uid": review.Request.UID, "result": fields{"status": "Success"}, "convertedObjects": all}})
			})
			if o := checkOne(t, s, "WH-CONVERT-1", rule.DefaultBudget); o.Verdict != test.want {
				t.Errorf("got %s (%s), want %s", o.Verdict, o.Reason, test.want)
			} else {
				t.Log(o.Reason)
			}
		})
	}
}

// TestUncalled: a sample of Reject for which no webhook is called is not denied. The Fix of a deletion is for the old object.
func TestUncalled(t *testing.T) {
	protected := check.Sample{Manifest: check.Manifest{Object: pod("kept", "good")}, Operation: "DELETE", Message: "is kept", Fix: `[{"op": "add", "path": "/metadata/labels/app", "value": "free"}]`}
	foreign := check.Sample{Manifest: check.Manifest{Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, Message: "nonsense"}
	scale := check.Sample{Manifest: manifest(t, "{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: web, namespace: default}}"), Operation: "UPDATE", Subresource: "scale"}
	for name, test := range map[string]struct {
		reject []check.Sample
		want   framework.Verdict
		text   string
	}{
		"called":     {[]check.Sample{protected}, framework.Pass, ""},
		"not called": {[]check.Sample{foreign}, framework.Fail, "CREATE configmaps default/a: the sample is in Reject, and no webhook is called for it"},
		"a scale":    {[]check.Sample{scale}, framework.Pass, "Scale is what a request for a subresource has"},
	} {
		for _, allow := range [][]check.Sample{nil, {{Manifest: check.Manifest{Object: pod("good", "good")}}}} {
			s := soundSubject(fault{validate: func(_ *sound, in incoming, out *outgoing) {
				u := unstructured.Unstructured{Object: in.old}
				if in.operation == "DELETE" && u.GetName() == "kept" && u.GetLabels()["app"] == "kept" {
					out.deny(403, "the pod is kept")
				}
			}})
			s.Reject, s.Allow = test.reject, allow
			p := check.Prepare(t.Context(), s)
			got := strings.Join(p.Misuse, "\n")
			for _, w := range p.Webhooks {
				for _, each := range rules.All() {
					if each.ID == "WH-VERDICT-1" {
						o := p.Check(each, w, rule.DefaultBudget)
						if got += o.Reason; o.Verdict == framework.Errored || o.Verdict == framework.Fail && test.want != framework.Fail {
							t.Errorf("%s: %s: got %s: %s", name, w.Name, o.Verdict, o.Reason)
						}
					}
				}
			}
			if !strings.Contains(got, test.text) {
				t.Errorf("%s: got %q, want %q in it", name, got, test.text)
			}
		}
	}
}

// TestNoWebhookDenies: a sample of Reject that all webhooks allow is the failure of the validating one. If none is called, the reason is that
// of the first one, unless it is not known whether another one is called: that is no verdict.
func TestNoWebhookDenies(t *testing.T) {
	rulesOf := func(group, resource string) string {
		return fmt.Sprintf("rules: [{operations: [CREATE], apiVersions: [v1], apiGroups: [%q], resources: [%s]}]", group, resource)
	}
	pods, services, jobs := rulesOf("", "pods"), rulesOf("", "services"), rulesOf("batch", "jobs")
	unknown := pods + `, matchConditions: [{name: a, expression: "authorizer.path('/a').check('get').allowed()"}]`
	verdict1 := rules.All()[slices.IndexFunc(rules.All(), func(each check.Rule) bool { return each.ID == "WH-VERDICT-1" })]
	for name, test := range map[string]struct {
		mutating, validating, also string // the rules of three webhooks
		want                       []framework.Verdict
		reason                     string
	}{
		"both allow":    {pods, pods, services, []framework.Verdict{framework.Inconclusive, framework.Fail, framework.Unsupported}, "the sample is in Reject, and is allowed"},
		"first reason":  {services, jobs, jobs, []framework.Verdict{framework.Fail, framework.Unsupported, framework.Unsupported}, "has resources services"},
		"unknown":       {services, unknown, jobs, []framework.Verdict{framework.Inconclusive, framework.Unsupported, framework.Unsupported}, "is not known: "},
		"unknown first": {unknown, services, jobs, []framework.Verdict{framework.Inconclusive, framework.Unsupported, framework.Unsupported}, "is not known: "},
	} {
		s := soundSubject(fault{})
		s.Allow, s.Reject, s.Configurations = nil, []check.Sample{{Manifest: check.Manifest{Object: pod("free", "good")}, Message: "bad"}}, nil
		for i, matches := range []string{test.mutating, test.validating, test.also} {
			s.Configurations = append(s.Configurations, manifest(t, fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: %sWebhookConfiguration, metadata: {name: a},
  webhooks: [{name: w%d.example.com, clientConfig: {service: {namespace: a, name: a, path: /validate}}, admissionReviewVersions: [v1], sideEffects: None, %s}]}`, []string{"Mutating", "Validating", "Validating"}[i], i, matches)))
		}
		p, reasons := check.Prepare(t.Context(), s), ""
		for i, w := range p.Webhooks {
			o := p.Check(verdict1, w, rule.DefaultBudget)
			if reasons += o.Reason + "\n"; o.Verdict != test.want[i] {
				t.Errorf("%s: %s: got %s (%s), want %s", name, w.Name, o.Verdict, o.Reason, test.want[i])
			}
		}
		if !strings.Contains(reasons, test.reason) {
			t.Errorf("%s: got %q, want %q in it", name, reasons, test.reason)
		}
	}
}
