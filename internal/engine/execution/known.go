package execution

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/mistake"
	"github.com/admissiontest/admissiontest/internal/fields"
	"github.com/admissiontest/admissiontest/internal/match"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// schemaLimit limits the wait for a field in the OpenAPI of the API server, which follows a new
// CustomResourceDefinition after some time.
const schemaLimit = 5 * time.Second

// objects are the objects that were seen at the fields of a value, by the path of the field:
// "request.object" in a review, and "" for the value itself.
type objects map[string][]map[string]any

// knownFields returns a mistake.Error for fields of objects that an expectation assumes to exist although
// their kinds do not have them: without these fields, the expectation that held says nothing. Result is what
// it was compared with.
func (c *Case) knownFields(ctx context.Context, then *scenario.Expectation, result framework.Result) error {
	if then == nil {
		return nil
	}
	at := c.place + ".then"
	problems := c.unknownFields(ctx, at+".object", then.Object, objects{"": {result.Fields()}})
	if then.Audit != nil && result.Audit != nil {
		problems = append(problems, c.unknownFields(ctx, at+".audit", then.Audit, objects{
			"requestObject": {result.Audit.RequestObject}, "responseObject": {result.Audit.ResponseObject},
		})...)
	}
	if then.Calls != nil {
		for list, calls := range map[string][]scenario.Call{"inOrder": then.Calls.InOrder, "anyOrder": then.Calls.AnyOrder, "include": then.Calls.Include} {
			for i, call := range calls {
				problems = append(problems, c.unknownInCall(ctx, c.callPlace(at, list, i), call, result.Trace)...)
			}
		}
	}
	return asError(problems)
}

// asError returns a mistake.Error, or nil without problems.
func asError(problems []*scenario.Error) error {
	if len(problems) == 0 {
		return nil
	}
	return &mistake.Error{Problems: problems}
}

// callPlace returns the place of an expected call. In a file, calls in order can be a list without a name.
func (c *Case) callPlace(then, list string, index int) string {
	short, long := fmt.Sprintf("%s.calls[%d]", then, index), fmt.Sprintf("%s.calls.%s[%d]", then, list, index)
	if c.Scenario.Origin == nil || list != "inOrder" {
		return long
	}
	_, line, column := c.Scenario.Origin.Position(short, "")
	if _, l, k := c.Scenario.Origin.Position(long, ""); l > line || l == line && k > column {
		return long
	}
	return short
}

// unknownInCall returns the unknown fields of the objects that an expected call names.
func (c *Case) unknownInCall(ctx context.Context, at string, expect scenario.Call, trace framework.Trace) []*scenario.Error {
	request, review := objects{}, objects{}
	for _, call := range trace {
		if call.Webhook != expect.Webhook {
			continue
		}
		for _, name := range []string{"object", "oldObject", "options"} {
			if one, ok := call.Request()[name].(map[string]any); ok {
				request[name] = append(request[name], one)
				review["request."+name] = request[name]
			}
		}
	}
	return append(c.unknownFields(ctx, at+".request", expect.Request, request), c.unknownFields(ctx, at+".review", expect.Review, review)...)
}

// unknownFields returns the fields that an expectation assumes and none of the seen objects can have.
func (c *Case) unknownFields(ctx context.Context, at string, expect map[string]any, seen objects) []*scenario.Error {
	if expect == nil {
		return nil
	}
	var problems []*scenario.Error
	for _, one := range match.Assumptions(expect) {
		holder, path := "", one.Field
		for _, step := range one.Field {
			if name, isName := step.(string); isName && seen[holder] == nil {
				holder, path = strings.TrimPrefix(holder+"."+name, "."), path[1:]
			}
		}
		if len(path) == 0 || len(seen[holder]) == 0 {
			continue
		}
		if problem := c.unknownField(ctx, at, one, path, seen[holder]); problem != nil {
			problems = append(problems, problem)
		}
	}
	return problems
}

// unknownField returns the error of an assumed field that none of the objects can have, or nil. Path is the
// path in the objects.
func (c *Case) unknownField(ctx context.Context, at string, assumed match.Assumption, path []any, of []map[string]any) *scenario.Error {
	var names, kinds []string
	for _, one := range of {
		kind := kindOf(one)
		missing := c.missingField(ctx, kind, path)
		if missing == nil || missing.Index != len(path)-1 {
			return nil
		}
		names, kinds = append(names, missing.Names...), append(kinds, kind.GroupVersion().String()+" "+kind.Kind)
	}
	kinds = slices.Compact(slices.Sorted(slices.Values(kinds)))
	field := ""
	for _, step := range assumed.Written {
		switch step := step.(type) {
		case string:
			field = match.Key(field, step)
		case int:
			field = match.Index(field, step)
		}
	}
	name, _ := path[len(path)-1].(string)
	hint := strings.TrimPrefix(suggest.DidYouMean(name, names), "; ")
	if hint == "" {
		hint = "check its name and indentation; a field that the scenario writes, in a manifest or a patch, can be unknown"
	}
	return c.Scenario.ErrorAt(at, field, fmt.Sprintf("unknown field %q in %s; expected a field of the API server's %s, because the expectation holds without such a field",
		name, strings.TrimPrefix(at, c.place+"."), strings.Join(kinds, " or ")), hint)
}

// missingField returns the first field of a path that a kind does not have, and nil if it is there, if the
// scenario writes it itself, or if the fields of the kind are not known.
func (c *Case) missingField(ctx context.Context, kind schema.GroupVersionKind, path []any) *fields.Missing {
	if c.writesField(path) {
		return nil
	}
	missing, builtIn := fields.InKind(kind, path)
	read := c.target.Optional().OpenAPI
	if builtIn && missing == nil || read == nil {
		return missing
	}
	_ = wait.PollUntilContextTimeout(ctx, pollInterval*10, min(schemaLimit, c.patience), true, func(ctx context.Context) (bool, error) {
		document, err := read(ctx, kind.GroupVersion())
		if err != nil {
			return builtIn, nil //nolint:nilerr // the types of this build say enough
		}
		found, known := fields.InDocument(document, kind, path)
		if known {
			missing = found
		}
		return builtIn || known && found == nil, nil
	})
	return missing
}
