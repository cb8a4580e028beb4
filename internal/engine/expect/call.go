package expect

import (
	"net/textproto"
	"reflect"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/match"

	"github.com/admissiontest/admissiontest/internal/redact"
)

// judgeCall compares an expected call with the call at index. If the webhooks differ, it does not
// compare other fields.
func (c comparison) judgeCall(expect scenario.Call, trace framework.Trace, index int, path string) []Mismatch {
	call := trace[index]
	if expect.Webhook != call.Webhook {
		return ofCall(one(path, "a call of "+expect.Webhook, called(trace, index)), index)
	}
	if expect.Header != nil {
		expect.Header = canonical(expect.Header)
	}
	expect.Webhook = "" // it is the same
	var found []Mismatch
	for _, field := range fieldsOf(expect) {
		if field.name != "phase" && !call.Observed { // the other fields are only known for calls that a Hook received
			found = append(found, one(match.Key(path, field.name), c.Describe(field.value), "unknown: no Hook received the call, it is only inferred")...)
			break
		}
		var actual any = match.Absent{}
		if value, ok := c.seen[index][field.name]; ok {
			actual = value
		}
		found = append(found, c.Match(field.value, actual, match.Key(path, field.name))...)
	}
	return ofCall(found, index)
}

// namedField is a field of an expected call that is set.
type namedField struct {
	name  string
	value any
}

// fieldsOf returns the fields of an expectation that are set, in the order of the type.
func fieldsOf(expect any) []namedField {
	var fields []namedField
	for i, value := 0, reflect.ValueOf(expect); i < value.NumField(); i++ {
		if name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ","); !value.Field(i).IsZero() {
			fields = append(fields, namedField{name, value.Field(i).Interface()})
		}
	}
	return fields
}

// viewsOf returns calls as maps: see viewOf.
func (c comparison) viewsOf(calls framework.Trace) []map[string]any {
	views := make([]map[string]any, 0, len(calls))
	for _, call := range calls {
		views = append(views, c.viewOf(call))
	}
	return views
}

// viewOf returns a call as a map with the field names of an expectation. It always has query
// and header, which can be empty. It has review and request only if the review was decoded, and
// code, response and responseBytes only if there was an answer.
func (c comparison) viewOf(call framework.Call) map[string]any {
	seen := map[string]any{
		"webhook": call.Webhook,
		"phase":   string(call.Phase),
		"query":   firsts(call.Query),
		"header":  firsts(call.Header),
		"method":  call.Method,
		"path":    call.Path,
		"proto":   call.Proto,
	}
	if call.Protocols != nil {
		seen["protocols"] = list(call.Protocols)
	}
	for name, text := range map[string]string{
		"serverName": call.ServerName, "clientCertificate": call.ClientCertificate, "connection": call.Connection,
	} {
		if text != "" {
			seen[name] = text
		}
	}
	if call.Review != nil {
		seen["review"] = call.Review
	}
	if request := call.Request(); request != nil {
		seen["request"] = request
	}
	seen["requestBytes"] = int64(call.RequestBytes)
	if call.Code != 0 {
		seen["code"], seen["responseBytes"] = int64(call.Code), int64(call.ResponseBytes)
	}
	if call.Response != nil {
		seen["response"] = call.Response
	}
	if !call.Finished.IsZero() {
		seen["latencyMillis"] = float64(call.Finished.Sub(call.Started).Microseconds()) / 1000
	}
	return redact.Fields(seen)
}

// firsts returns the first value for each name.
func firsts(values map[string][]string) map[string]any {
	first := make(map[string]any, len(values))
	for name, all := range values {
		if len(all) > 0 {
			first[name] = all[0]
		}
	}
	return first
}

// canonical returns an expected header with canonical names, as in net/http. The fields of $exact
// are also names.
func canonical(header map[string]any) map[string]any {
	result := make(map[string]any, len(header))
	for name, value := range header {
		if name == "$exact" {
			if inner, ok := value.(map[string]any); ok {
				value = canonical(inner)
			}
			result[name] = value
			continue
		}
		result[textproto.CanonicalMIMEHeaderKey(name)] = value
	}
	return result
}
