package judge

import (
	"net/textproto"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/match"
)

// judgeCall compares an expected call with the call at index. If the webhooks differ, it does not
// compare other fields.
func (c comparison) judgeCall(expect scenario.Call, trace framework.Trace, index int, path string) []Mismatch {
	call := trace[index]
	if expect.Webhook != call.Webhook {
		return []Mismatch{{Path: path, Expected: "a call of " + expect.Webhook, Actual: called(trace, index), Call: &index}}
	}
	fields := expectedFields(expect)
	seen := c.seen[index]
	var found []match.Difference
	if expect.Phase != "" {
		found = append(found, c.Match(expect.Phase, seen["phase"], match.Key(path, "phase"))...)
	}
	if len(fields) > 0 && !call.Observed {
		found = append(found, match.Difference{
			Path:     match.Key(path, fields[0].name),
			Expected: c.Describe(fields[0].value),
			Actual:   "unknown: no Hook received the call, it is only inferred",
		})
		return mismatches(found, &index)
	}
	for _, field := range fields {
		var actual any = match.Absent{}
		if value, ok := seen[field.name]; ok {
			actual = value
		}
		found = append(found, c.Match(field.value, actual, match.Key(path, field.name))...)
	}
	return mismatches(found, &index)
}

// namedField is a field of an expected call that is set.
type namedField struct {
	name  string
	value any
}

// expectedFields returns the set fields that are only known for calls that a Hook received.
func expectedFields(expect scenario.Call) []namedField {
	var fields []namedField
	add := func(set bool, name string, value any) {
		if set {
			fields = append(fields, namedField{name, value})
		}
	}
	add(expect.Review != nil, "review", expect.Review)
	add(expect.Request != nil, "request", expect.Request)
	add(expect.Query != nil, "query", expect.Query)
	add(expect.Header != nil, "header", canonical(expect.Header))
	add(expect.Method != "", "method", expect.Method)
	add(expect.Path != nil, "path", expect.Path)
	add(expect.Proto != nil, "proto", expect.Proto)
	add(expect.ServerName != nil, "serverName", expect.ServerName)
	add(expect.Protocols != nil, "protocols", expect.Protocols)
	add(expect.ClientCertificate != nil, "clientCertificate", expect.ClientCertificate)
	add(expect.Connection != nil, "connection", expect.Connection)
	add(expect.Response != nil, "response", expect.Response)
	add(expect.Code != nil, "code", expect.Code)
	add(expect.LatencyMillis != nil, "latencyMillis", expect.LatencyMillis)
	add(expect.RequestBytes != nil, "requestBytes", expect.RequestBytes)
	add(expect.ResponseBytes != nil, "responseBytes", expect.ResponseBytes)
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
		seen["protocols"] = anys(call.Protocols)
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
	return c.secrets.Fields(seen)
}

func anys(texts []string) []any {
	list := make([]any, 0, len(texts))
	for _, text := range texts {
		list = append(list, text)
	}
	return list
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
