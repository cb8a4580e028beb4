package check

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/decode"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
)

// refusedBy checks who is expected to refuse a request: a webhook or a policy of the scenario, and
// nothing that a refusal excludes.
func (c *checker) refusedBy(then *strictyaml.Node, where *decode.Place) {
	n := then.Get("refusedBy")
	if n == nil || n.Kind != strictyaml.KindMapping {
		return
	}
	where = where.Field("refusedBy")
	if webhook := n.Get("webhook"); (webhook == nil) == (n.Get("policy") == nil) {
		c.Fail(n, fmt.Sprintf("%s has %s; expected one of webhook, policy", where, map[bool]string{true: "neither webhook nor policy", false: "webhook and policy"}[webhook == nil]), "")
	}
	if failed := n.Get("error"); failed != nil && n.Has("validation") {
		c.Fail(failed, where.String()+" has error and validation; expected one: an error is not a validation that does not hold", "remove one of them")
	} else if failed != nil && failed.Kind == strictyaml.KindText && failed.Raw == "" {
		c.Fail(failed, where.String()+".error is empty; expected a part of the error", "")
	}
	for _, name := range []string{"binding", "validation"} {
		if of := n.Get(name); of != nil && !n.Has("policy") {
			c.Fail(of, fmt.Sprintf("%s has %s without policy; expected the policy too", where, name), "")
		}
	}
	if !c.installed.Any {
		c.named(n, "webhook", append(slices.Clone(c.webhooks), c.installed.Names...), where)
	}
	c.named(n, "policy", c.policies, where)
	c.named(n, "binding", c.bindings, where)
	if allowed, ok := then.Get("allowed").Plain().(bool); ok && allowed {
		c.Fail(n, where.String()+" is set together with allowed: true; expected only one of them", "remove one of them")
	}
	if codes := then.Get("code"); codes != nil && !slices.ContainsFunc(codes.AsList().Items, func(code *strictyaml.Node) bool {
		number, ok := code.Value.(int64)
		return !ok || number >= http.StatusBadRequest
	}) {
		c.Fail(codes, fmt.Sprintf("%s is set together with code: %s; expected a code of 400 or more", where, codeText(codes)), "remove one of them")
	}
}

// named checks that a field has the name of something in the manifests of the scenario.
func (c *checker) named(n *strictyaml.Node, field string, known []string, where *decode.Place) {
	named := n.Get(field)
	if named == nil {
		return
	}
	if len(named.AsList().Items) == 0 {
		c.Fail(named, fmt.Sprintf("%s is empty; expected the name of a %s", where.Field(field), field), "")
	}
	for _, value := range named.AsList().Items {
		if value.Kind != strictyaml.KindText || slices.Contains(known, value.Raw) || value.Raw != "" && strings.Contains(c.serverFiles, value.Raw) {
			continue
		}
		known = slices.Compact(slices.Sorted(slices.Values(known)))
		c.Fail(value, fmt.Sprintf("%s is %s; expected a %s of a manifest in given, install or a step", where.Field(field), strictyaml.Quote(value.Raw), field),
			decode.SuggestOrList(value.Raw, known, "no manifest of this scenario has one"))
	}
}
