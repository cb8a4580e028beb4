package scenario

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

// expectation checks what the fields of an expectation say together.
func (c *checker) expectation(then *Expectation, set *document.Decoded) {
	c.contradiction(then, set)
	if by := set.Get("refusedBy"); by != nil && by.Kind == document.KindMapping {
		c.refusalExcluded(set)
	}
	c.called(set.Get("overlapping"))
}

// contradiction reports expectations that no response can meet: allowed together with a code or a
// reason that excludes it.
func (c *checker) contradiction(then *Expectation, set *document.Decoded) {
	codes := set.Node.Get("code")
	if codes != nil && slices.ContainsFunc(codes.AsList().Items, func(code *document.Node) bool { return code.Kind != document.KindInteger }) {
		return // the decoder has reported it
	}
	succeeds := slices.ContainsFunc(then.Code, func(code int) bool { return code < http.StatusBadRequest })
	fails := slices.ContainsFunc(then.Code, func(code int) bool { return code >= http.StatusBadRequest })
	reason := set.Node.Get("reason")
	refusedFor := reason != nil && !slices.ContainsFunc(reason.AsList().Items, isEmptyText)
	const (
		expected = "allowed: true with a code below 400 and without reason, or allowed: false with a code of 400 or more"
		hint     = "remove one of them"
	)
	switch allowed := then.Allowed; {
	case allowed != nil && (*allowed && fails && !succeeds || !*allowed && succeeds && !fails):
		c.Fail(codes, fmt.Sprintf("%s expects allowed: %t and code: %s; expected %s", set.Path, *allowed, codeText(codes), expected), hint)
	case allowed != nil && *allowed && refusedFor:
		c.Fail(reason, fmt.Sprintf("%s expects allowed: true and a reason, but only a refusal has a reason; expected %s", set.Path, expected), hint)
	case allowed == nil && refusedFor && succeeds && !fails:
		c.Fail(codes, fmt.Sprintf("%s expects code: %s and a reason, but only a refusal has a reason; expected %s", set.Path, codeText(codes), expected), hint)
	}
}

func isEmptyText(n *document.Node) bool { return n.Kind == document.KindText && n.Raw == "" }

// codeText returns codes as they are written.
func codeText(n *document.Node) string {
	var codes []string
	for _, item := range n.AsList().Items {
		codes = append(codes, item.Raw)
	}
	return strings.Join(codes, " or ")
}

// refusalExcluded reports a code that excludes a refusal.
func (c *checker) refusalExcluded(set *document.Decoded) {
	if codes := set.Node.Get("code"); codes != nil && !slices.ContainsFunc(codes.AsList().Items, func(code *document.Node) bool {
		number, ok := code.Value.(int64)
		return !ok || number >= http.StatusBadRequest
	}) {
		c.Fail(codes, fmt.Sprintf("%s is set together with code: %s; expected a code of 400 or more", set.At("refusedBy"), codeText(codes)), "remove one of them")
	}
}

// refusedBy checks who is expected to refuse a request: a webhook or a policy of the scenario.
func (c *checker) refusedBy(set *document.Decoded) {
	if !c.options.AnyInstalled {
		c.named(set, "webhook", slices.Concat(c.webhooks, c.options.Installed))
	}
	c.named(set, "policy", c.policies)
	c.named(set, "binding", c.bindings)
}

// named checks that a field has the name of something in the manifests of the scenario.
func (c *checker) named(set *document.Decoded, field string, known []string) {
	named := set.Node.Get(field)
	if named == nil {
		return
	}
	known = slices.Compact(slices.Sorted(slices.Values(known)))
	for _, value := range named.AsList().Texts() {
		if slices.Contains(known, value.Raw) || value.Raw != "" && strings.Contains(c.serverFiles, value.Raw) {
			continue
		}
		c.Fail(value, fmt.Sprintf("%s is %s; expected a %s of a manifest in given, install or a step", set.At(field), document.Quote(value.Raw), field),
			document.SuggestOrList(value.Raw, known, "no manifest of this scenario has one"))
	}
}
