package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/suggest"
	"github.com/admissiontest/admissiontest/internal/userfile"
)

// readKnownFailing reads the file of --known-failing: a YAML mapping from the name of a
// scenario, an area or a pattern to the reason. It returns the reasons by the names of
// scenarios. Each error has file, line and column.
func readKnownFailing(file string, all []scenario.Scenario) (map[string]string, error) {
	content, err := userfile.Read(file)
	if err != nil {
		return nil, usagef("--known-failing: %w", err)
	}
	parsed, err := parser.ParseBytes(content, 0)
	if err != nil {
		return nil, usagef("--known-failing: %s: %s", file, yaml.FormatError(err, false, false))
	}
	reasons := map[string]string{}
	var errs []error
	for _, document := range parsed.Docs {
		if document.Body == nil {
			continue
		}
		mapping, ok := document.Body.(*ast.MappingNode)
		if !ok {
			errs = append(errs, wrongEntry(file, document.Body, "want a map: NAME: reason"))
			continue
		}
		for _, entry := range mapping.Values {
			if err := addKnownFailing(reasons, file, entry, all); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if len(errs) > 0 {
		return nil, withCode(exitUsage, errors.Join(errs...))
	}
	return reasons, nil
}

// addKnownFailing adds the scenarios of one entry.
func addKnownFailing(reasons map[string]string, file string, entry *ast.MappingValueNode, all []scenario.Scenario) error {
	reason, ok := entry.Value.(*ast.StringNode)
	if !ok || strings.TrimSpace(reason.Value) == "" {
		return wrongEntry(file, entry.Key, "want a reason: NAME: reason")
	}
	names, err := engine.Match(all, entry.Key.GetToken().Value)
	if err != nil {
		return wrongEntry(file, entry.Key, err.Error())
	}
	for _, name := range names {
		if reasons[name] != "" {
			return wrongEntry(file, entry.Key, fmt.Sprintf("scenario %s is listed twice", name))
		}
		reasons[name] = reason.Value
	}
	return nil
}

func wrongEntry(file string, node ast.Node, problem string) error {
	position := node.GetToken().Position
	return fmt.Errorf("--known-failing: %s:%d:%d: %s", file, position.Line, position.Column, problem)
}

// implementationKeys are the keys of --implementation.
func implementationKeys() []string {
	return []string{"organization", "project", "version", "url", "contact"}
}

// parseImplementation reads the values of --implementation, KEY=VALUE each. Contact can
// occur several times.
func parseImplementation(settings []string) (*framework.Implementation, error) {
	if len(settings) == 0 {
		return nil, nil //nolint:nilnil // the flag is not given
	}
	out := &framework.Implementation{}
	fields := map[string]*string{"organization": &out.Organization, "project": &out.Project, "version": &out.Version, "url": &out.URL}
	for _, setting := range settings {
		key, value, ok := strings.Cut(setting, "=")
		switch {
		case !slices.Contains(implementationKeys(), key):
			return nil, usagef("--implementation %q: want KEY=VALUE with one of the keys %s%s", setting, strings.Join(implementationKeys(), ", "), suggest.DidYouMean(key, implementationKeys()))
		case !ok || value == "":
			return nil, usagef("--implementation %q: want %s=VALUE", setting, key)
		case key == "contact":
			out.Contact = append(out.Contact, value)
		case *fields[key] != "":
			return nil, usagef("--implementation %q: %s is given twice", setting, key)
		default:
			*fields[key] = value
		}
	}
	return out, nil
}
