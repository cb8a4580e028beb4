package expect

import (
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/match"
	"github.com/admissiontest/admissiontest/internal/redact"
)

// Object is a value with many fields that differs from what is expected.
type Object struct {
	// Path is the place of the value: "object", "calls[1].request".
	Path string
	// Expected is the value nearest to Actual that matches: see match.Nearest.
	Expected, Actual any
}

// Objects returns the object in the response and the requests, reviews and responses of calls that
// have a mismatch. It only finds the requests, reviews and responses of calls that are expected in order.
// It leaves out what package redact hides.
func Objects(expect *scenario.Expectation, got framework.Result, mismatches []Mismatch) []Object {
	if expect == nil || len(mismatches) == 0 {
		return nil
	}
	c := compare()
	var all []Object
	add := func(path string, expected, actual any) {
		for _, one := range mismatches {
			if strings.HasPrefix(one.Path, path+".") || strings.HasPrefix(one.Path, path+"[") {
				all = append(all, Object{Path: path, Expected: c.Nearest(expected, actual), Actual: actual})
				return
			}
		}
	}
	if fields := got.Fields(); fields != nil {
		add("object", c.expected(expect.Object, fields), redact.Fields(fields))
	}
	var webhooks framework.Trace
	for _, call := range got.Trace {
		if call.Plugin == nil {
			webhooks = append(webhooks, call)
		}
	}
	if expect.Calls == nil {
		return all
	}
	for i, call := range expect.Calls.InOrder {
		if i == len(webhooks) || webhooks[i].Webhook != call.Webhook {
			break
		}
		if redact.HoldsSecrets(webhooks[i].Request()) {
			continue // an expectation does not say that it has such values
		}
		seen, expected := c.viewOf(webhooks[i]), redact.Fields(map[string]any{"request": call.Request, "review": call.Review, "response": call.Response})
		for _, name := range []string{"request", "review", "response"} {
			if want, _ := expected[name].(map[string]any); len(want) > 0 && seen[name] != nil {
				add(match.Key(match.Index("calls", i), name), want, seen[name])
			}
		}
	}
	return all
}

// expected returns an expectation of an object without what is hidden in such an object: the kind can
// be known from the object only.
func (c comparison) expected(expect, object map[string]any) map[string]any {
	if expect == nil || expect["kind"] != nil {
		return redact.Fields(expect)
	}
	copied := map[string]any{"kind": object["kind"]}
	for key, value := range expect {
		copied[key] = value
	}
	hidden := redact.Fields(copied)
	delete(hidden, "kind")
	return hidden
}
