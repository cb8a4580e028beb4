package doctor

import (
	"path/filepath"
	"slices"
	"strings"
)

// sarif are the properties of an object in a SARIF log.
type sarif = map[string]any

// SARIF returns the report as a SARIF 2.1.0 log with the properties that code scanning reads
// (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html). Paths are relative to root, if the files are in it.
func (r *Report) SARIF(root string) map[string]any {
	text := func(text string) sarif { return sarif{"text": text} }
	rules, notifications, results := []sarif{}, []sarif{}, []sarif{}
	for _, rule := range r.Rules {
		rules = append(rules, sarif{
			"id": rule.ID, "name": rule.Name, "shortDescription": text(rule.Title), "fullDescription": text(rule.Why), "help": text(rule.Fix),
			"helpUri": rule.Source[0], "defaultConfiguration": sarif{"level": severityOf(rule.Level)},
		})
	}
	for _, u := range r.Inconclusive() {
		notifications = append(notifications, sarif{"level": "warning", "message": text(strings.TrimSpace(u.Rule + " is inconclusive: " + u.Object + " " + u.Reason))})
	}
	for _, f := range r.Findings {
		results = append(results, f.result(r.Rules, root))
	}
	for _, f := range r.Suppressed {
		result := f.result(r.Rules, root)
		result["suppressions"] = []sarif{{"kind": "inSource"}}
		results = append(results, result)
	}
	invocation := sarif{"executionSuccessful": true}
	if len(notifications) > 0 {
		invocation["toolExecutionNotifications"] = notifications
	}
	driver := sarif{"name": "admissiontest doctor", "informationUri": "https://github.com/admissiontest/admissiontest", "rules": rules}
	return sarif{
		"$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json", "version": "2.1.0",
		"runs": []sarif{{"tool": sarif{"driver": driver}, "invocations": []sarif{invocation}, "results": results}},
	}
}

// result returns the finding as a result of a SARIF log.
func (f Finding) result(rules []Rule, root string) sarif {
	text := f.Message
	if f.Request != "" {
		text = f.Request + ": " + text
	}
	if f.Unknown != "" {
		text += ". Not certain: " + f.Unknown
	}
	location := sarif{"logicalLocations": []sarif{{"fullyQualifiedName": f.Object + " " + f.Field}}}
	if f.File != "" {
		location["physicalLocation"] = sarif{
			"artifactLocation": sarif{"uri": relative(root, f.File)}, "region": sarif{"startLine": max(f.Line, 1), "startColumn": max(f.Column, 1)},
		}
	}
	return sarif{
		"ruleId": f.Rule, "ruleIndex": slices.IndexFunc(rules, func(r Rule) bool { return r.ID == f.Rule }), "level": f.Severity,
		"message": sarif{"text": text + ". Fix: " + f.Fix}, "locations": []sarif{location}, "partialFingerprints": sarif{"admissiontest/v1": f.Fingerprint},
	}
}

// relative returns the path of a file below root, with slashes.
func relative(root, file string) string {
	absolute, err := filepath.Abs(file)
	if err == nil {
		if below, err := filepath.Rel(root, absolute); err == nil && filepath.IsLocal(below) {
			return filepath.ToSlash(below)
		}
	}
	return filepath.ToSlash(file)
}
