package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/redact"
)

func (a *app) listCommand() *cobra.Command {
	var out outputFlag
	chosen := a.selection()
	wide := false
	command := &cobra.Command{
		Use:     "list [NAME|AREA|PATTERN|FILE|DIR ...]",
		Short:   "List scenarios",
		Long:    "List the scenarios of the catalogue, or those that the arguments select. The arguments\nare the same as for run.",
		Example: "  admissiontest list reinvocation --wide\n  admissiontest list -o json",
		RunE: a.reading(func(_ context.Context, args []string) error {
			asJSON, err := out.json()
			if err != nil {
				return err
			}
			selected, err := chosen.resolve(args, scenario.LoadOptions{AnyInstalled: true, AllowServerFlags: []string{"*"}})
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(a.Stdout, listOf(selected))
			}
			return writeList(a.Stdout, selected, wide)
		}),
	}
	chosen.add(command)
	out.add(command)
	command.Flags().BoolVar(&wide, "wide", false, "also print the requirements")
	return command
}

// scenarioList is the output of list -o json. Its keys are frozen, as the keys of a report are.
type scenarioList struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Items      []listItem `json:"items"`
}

// listItem is one scenario of a list.
type listItem struct {
	Name        string          `json:"name"`
	Area        string          `json:"area"`
	Level       framework.Level `json:"level"`
	Requirement string          `json:"requirement"`
	Source      []string        `json:"source"`
	Behaviours  []string        `json:"behaviours,omitempty"`
	Since       string          `json:"since,omitempty"`
	Until       string          `json:"until,omitempty"`
	FeatureGate string          `json:"featureGate,omitempty"`
	Needs       []string        `json:"needs,omitempty"`
	File        string          `json:"file"`
}

func listOf(all []scenario.Scenario) scenarioList {
	list := scenarioList{APIVersion: scenario.APIVersion, Kind: "ScenarioList", Items: []listItem{}}
	for _, s := range scenario.Cases(all) {
		list.Items = append(list.Items, listItem{
			Name: s.Metadata.Name, Area: s.Area, Level: s.Spec.Level,
			Requirement: s.Spec.Requirement, Source: s.Spec.Source, Behaviours: s.Spec.Behaviours,
			Since: s.Spec.Since, Until: s.Spec.Until, FeatureGate: s.Spec.FeatureGate, Needs: s.Spec.Needs, File: s.File,
		})
	}
	return list
}

func writeList(w io.Writer, all []scenario.Scenario, wide bool) error {
	return writeTable(w, func(row func(cells ...string)) {
		head := []string{"NAME", "LEVEL", "BEHAVIOURS"}
		if wide {
			head = append(head, "REQUIREMENT")
		}
		row(head...)
		for _, s := range scenario.Cases(all) {
			cells := []string{s.Metadata.Name, string(s.Spec.Level), strings.Join(s.Spec.Behaviours, ",")}
			if wide {
				cells = append(cells, strings.Join(strings.Fields(s.Spec.Requirement), " "))
			}
			row(cells...)
		}
	})
}

// writeTable writes rows in columns.
func writeTable(w io.Writer, fill func(row func(cells ...string))) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fill(func(cells ...string) { _, _ = fmt.Fprintln(table, strings.Join(cells, "\t")) })
	_ = table.Flush() // a strings.Builder returns no error
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return fmt.Errorf("write list: %w", err)
		}
	}
	return nil
}

// writeJSON writes one indented document.
func writeJSON(w io.Writer, document any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(document)
	if err == nil {
		_, err = w.Write(redact.EscapedJSON(text.Bytes()))
	}
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}
