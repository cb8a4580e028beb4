package rules

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/cel"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// callers are the users and groups that expressions compare with, beside one that none of them names.
func (s Subject) callers() []framework.User {
	var all []framework.User
	for _, p := range s.List() {
		for _, text := range p.expressions() {
			if !cel.Names(text, "request") || !strings.Contains(text, "userInfo") {
				continue
			}
			for _, constant := range cel.Texts(text) {
				for _, user := range []framework.User{{Name: constant}, {Name: "contract-other", Groups: []string{constant}}} {
					if !slices.ContainsFunc(all, func(known framework.User) bool { return reflect.DeepEqual(known, user) }) && constant != "" {
						all = append(all, user)
					}
				}
			}
		}
	}
	return all
}

// called sends a sample as each user whom the expressions name, as the controllers of Kubernetes, and as an administrator.
func (b *bench) called(s sample) {
	all := append(b.subject.callers(), Controllers()...)
	all = append(all, framework.User{Name: "contract-admin", Groups: []string{"system:masters", "system:authenticated"}})
	for _, user := range all[:min(len(all), mostKeys)] {
		as := b.derive(Called, s, s.Object, "as "+cmp.Or(strings.Join(user.Groups, " and "), user.Name)+" ("+user.Name+")")
		as.Request = as.Request.WithUser(user)
	}
}

// placed creates a sample in a namespace with the labels of each namespaceSelector, and in one without labels.
func (b *bench) placed(ctx context.Context, s sample) {
	u := b.addressed(s.Object)
	if s.stored != nil || u.GetNamespace() == "" {
		return
	}
	for i, labels := range b.subject.namespaceLabels() {
		name := cmp.Or(labels[corev1.LabelMetadataName], fmt.Sprintf("contract-labelled-%d", i))
		namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
		namespace.SetLabels(labels)
		if b.get(ctx, namespace.GroupVersionKind(), namespace, "") == nil {
			b.err = cmp.Or(b.err, b.on.shared.Install(ctx, namespace.Object, nil))
		}
		if b.err != nil {
			return
		}
		u.SetNamespace(name)
		b.derive(Placed, s, u.Object, fmt.Sprintf("in a namespace with the labels %v", labels))
	}
}

// mostVaried limits the values near constants of one sample.
const mostVaried = 80

// mostBetween limits the stored objects that lack something, and the stored ones near constants.
const mostBetween = 15

// variations returns an object with the values near the constants of the expressions, where they read it.
func (b *bench) variations(object map[string]any) []vary.Variation {
	variables, expressions := map[string]string{}, []string{}
	for _, p := range b.subject.List() {
		for _, each := range p.spec.Variables {
			variables[each.Name] = each.Expression
		}
		expressions = append(expressions, p.expressions()...)
	}
	return vary.NewVarier(variables, nil, expressions).Variations(object)
}

// varied gives a sample the values near the constants of the expressions, and other names.
func (b *bench) varied(s sample) {
	all := b.variations(s.Object)
	for _, each := range all[:min(len(all), mostVaried)] {
		b.derive(Varied, s, each.Object, each.What)
	}
	if u := b.addressed(s.Object); s.stored == nil && u.GetName() != "" {
		for _, name := range []string{"x" + u.GetName(), u.GetName() + "x"} {
			u.SetName(name)
			b.derive(Renamed, s, u.Object, "under the name "+name)
		}
	}
}

// between updates a stored good sample to what is near the constants or lacks something, and such an object to the sample, and deletes it.
func (b *bench) between(ctx context.Context, s sample, kept *unstructured.Unstructured) {
	if s.good < 0 {
		return
	}
	var all []vary.Variation
	for _, less := range b.lessRead(s.persisted()) {
		all = append(all, vary.Variation{What: less.change, Object: less.object})
	}
	all = append(all[:min(len(all), mostBetween)], b.variations(s.persisted())...)
	for i, each := range all[:min(len(all), 2*mostBetween)] {
		other := b.store(ctx, s, each.Object, fmt.Sprintf("-varied-%d", i))
		if other == nil {
			continue
		}
		update := func(stored *unstructured.Unstructured, from, to map[string]any, change string) {
			changed := vary.Patched(stored.Object, objects.MergePatch(from, to))
			b.add(Varied, s, framework.Update(stored, &unstructured.Unstructured{Object: changed}), "update the stored", change+" "+each.What)
		}
		if b.subject.handles(admissionregistrationv1.Update) {
			update(kept, s.persisted(), each.Object, "to one")
			update(other, each.Object, s.persisted(), "from one")
		}
		if b.subject.handles(admissionregistrationv1.Delete) {
			b.add(Varied, s, framework.Delete(other), "delete the stored", each.What)
		}
	}
}

// webhooks are the webhooks of configurations among the policies.
func (s Subject) webhooks() (all []map[string]any) {
	for _, m := range s.Policies {
		if list, _ := m.Object["webhooks"].([]any); objects.IsAdmission(m.Object) {
			for _, each := range list {
				fields, _ := each.(map[string]any)
				all = append(all, fields)
			}
		}
	}
	return all
}

// deciders are the names of the policies and webhooks.
func (s Subject) deciders() (names []string) {
	for _, p := range s.List() {
		names = append(names, p.GetName())
	}
	for _, each := range s.webhooks() {
		names = append(names, fmt.Sprint(each["name"]))
	}
	return names
}

// rules are the rules of the policies and webhooks.
func (s Subject) rules() (all []admissionregistrationv1.RuleWithOperations) {
	for _, p := range s.List() {
		all = append(all, p.resourceRules()...)
	}
	for _, each := range s.webhooks() {
		all = append(all, webhookOf(each).Rules...)
	}
	return all
}

// webhookOf reads a webhook. What cannot be read is missing.
func webhookOf(fields map[string]any) (webhook admissionregistrationv1.ValidatingWebhook) {
	specOf(unstructured.Unstructured{Object: map[string]any{"spec": fields}}, &webhook)
	return webhook
}

// resources are the resources of the rules, without subresources.
func (s Subject) resources() (all []string) {
	for _, rule := range s.rules() {
		for _, each := range rule.Resources {
			name, _, _ := strings.Cut(each, "/")
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// namespaceLabels are the labels that namespaceSelectors ask for, and that they exclude, and none.
func (s Subject) namespaceLabels() []map[string]string {
	all := []map[string]string{{}}
	add := func(selector any) {
		var labels metav1.LabelSelector
		fields, _ := selector.(map[string]any)
		specOf(unstructured.Unstructured{Object: map[string]any{"spec": fields}}, &labels)
		each := []map[string]string{vary.Selected(&labels)}
		for _, e := range labels.MatchExpressions {
			if e.Operator == metav1.LabelSelectorOpNotIn || e.Operator == metav1.LabelSelectorOpDoesNotExist {
				excluded := maps.Clone(each[0])
				excluded[e.Key] = append(e.Values, vary.Example)[0]
				each = append(each, excluded)
			}
		}
		for _, found := range each {
			if !slices.ContainsFunc(all, func(known map[string]string) bool { return reflect.DeepEqual(known, found) }) {
				all = append(all, found)
			}
		}
	}
	for _, m := range s.Policies {
		for _, at := range []cel.Path{{"spec", "matchConstraints"}, {"spec", "matchResources"}} {
			value, _ := vary.At(m.Object, at.Then("namespaceSelector"))
			add(value)
		}
	}
	for _, each := range s.webhooks() {
		add(each["namespaceSelector"])
	}
	return all
}
