package doctor

import (
	"path/filepath"
	"slices"
	"strings"
)

// Log is a SARIF 2.1.0 log with the properties that code scanning reads
// (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html).
type Log struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool        sarifTool         `json:"tool"`
	Invocations []sarifInvocation `json:"invocations"`
	Results     []sarifResult     `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name           string      `json:"name"`
	InformationURI string      `json:"informationUri"`
	Rules          []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID                   string       `json:"id"`
	Name                 string       `json:"name"`
	ShortDescription     sarifMessage `json:"shortDescription"`
	FullDescription      sarifMessage `json:"fullDescription"`
	Help                 sarifMessage `json:"help"`
	HelpURI              string       `json:"helpUri"`
	DefaultConfiguration struct {
		Level string `json:"level"`
	} `json:"defaultConfiguration"`
}

type sarifMessage struct {
	Text string `json:"text"`
}

type sarifInvocation struct {
	ExecutionSuccessful bool                `json:"executionSuccessful"`
	Notifications       []sarifNotification `json:"toolExecutionNotifications,omitempty"`
}

type sarifNotification struct {
	Level   string       `json:"level"`
	Message sarifMessage `json:"message"`
}

type sarifResult struct {
	RuleID              string             `json:"ruleId"`
	RuleIndex           int                `json:"ruleIndex"`
	Level               string             `json:"level"`
	Message             sarifMessage       `json:"message"`
	Locations           []sarifLocation    `json:"locations"`
	PartialFingerprints map[string]string  `json:"partialFingerprints"`
	Suppressions        []sarifSuppression `json:"suppressions,omitempty"`
}

type sarifLocation struct {
	Physical *sarifPhysical `json:"physicalLocation,omitempty"`
	Logical  []sarifLogical `json:"logicalLocations"`
}

type sarifPhysical struct {
	Artifact struct {
		URI string `json:"uri"`
	} `json:"artifactLocation"`
	Region struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
	} `json:"region"`
}

type sarifLogical struct {
	FullyQualifiedName string `json:"fullyQualifiedName"`
}

type sarifSuppression struct {
	Kind string `json:"kind"`
}

// SARIF returns the report as a SARIF log. Paths are relative to root, if the files are in it.
func (r *Report) SARIF(root string) Log {
	driver := sarifDriver{Name: "admissiontest doctor", InformationURI: "https://github.com/admissiontest/admissiontest", Rules: []sarifRule{}}
	for _, rule := range r.Rules {
		one := sarifRule{ID: rule.ID, Name: rule.Name, HelpURI: rule.Source[0]}
		one.ShortDescription.Text, one.FullDescription.Text, one.Help.Text = rule.Title, rule.Why, rule.Fix
		one.DefaultConfiguration.Level = string(severityOf(rule.Level))
		driver.Rules = append(driver.Rules, one)
	}
	run := sarifRun{Tool: sarifTool{driver}, Invocations: []sarifInvocation{{ExecutionSuccessful: true}}, Results: []sarifResult{}}
	for _, u := range r.Inconclusive() {
		run.Invocations[0].Notifications = append(run.Invocations[0].Notifications, sarifNotification{"warning", sarifMessage{strings.TrimSpace(u.Rule + " is inconclusive: " + u.Object + " " + u.Reason)}})
	}
	for _, f := range r.Findings {
		run.Results = append(run.Results, f.result(r.Rules, root))
	}
	for _, f := range r.Suppressed {
		result := f.result(r.Rules, root)
		result.Suppressions = []sarifSuppression{{"inSource"}}
		run.Results = append(run.Results, result)
	}
	return Log{Schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}
}

func (f Finding) result(rules []Rule, root string) sarifResult {
	text := f.Message
	if f.Request != "" {
		text = f.Request + ": " + text
	}
	if f.Unknown != "" {
		text += ". Not certain: " + f.Unknown
	}
	location := sarifLocation{Logical: []sarifLogical{{f.Object + " " + f.Field}}}
	if f.File != "" {
		location.Physical = &sarifPhysical{}
		location.Physical.Artifact.URI = relative(root, f.File)
		location.Physical.Region.StartLine, location.Physical.Region.StartColumn = max(f.Line, 1), max(f.Column, 1)
	}
	return sarifResult{
		RuleID: f.Rule, RuleIndex: slices.IndexFunc(rules, func(r Rule) bool { return r.ID == f.Rule }), Level: string(f.Severity), Message: sarifMessage{text + ". Fix: " + f.Fix},
		Locations: []sarifLocation{location}, PartialFingerprints: map[string]string{"admissiontest/v1": f.Fingerprint},
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
