package execution

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/shipped"
)

// configurations returns the webhook configurations and policies of the scenario and of --install, with their
// positions: what it is given, and what its steps install and send.
func (c *Case) configurations() []expect.Manifest {
	var all []expect.Manifest
	for _, m := range c.manifests() {
		if kindOf(m.object).Group == "admissionregistration.k8s.io" {
			all = append(all, c.errorsOf(m.path, m.object))
		}
	}
	if c.project != nil {
		for i, m := range c.project.Manifests {
			if kindOf(m.Object).Group == "admissionregistration.k8s.io" {
				all = append(all, InProject(c.project, i, object.Describe(m.Object)))
			}
		}
	}
	return all
}

// InProject returns how errors about a manifest of --install are written, with its name.
func InProject(project *shipped.Project, index int, name string) expect.Manifest {
	return expect.Manifest{
		Object: project.Manifests[index].Object, Name: name,
		At: func(field, message, hint string) *scenario.Error { return project.ErrorAt(index, field, message, hint) },
		In: func(field string, at [2]int, message string) *scenario.Error {
			return project.ErrorIn(index, field, at, message)
		},
	}
}

// typeWarnings returns what the type check says about the policies that were evaluated for a request, with
// positions. It returns none if the API server has no schema for the object.
func (c *Case) typeWarnings(request framework.Request, decisions []report.Decision) (texts []string) {
	check := c.target.Optional().TypeCheck
	evaluated := slices.DeleteFunc(slices.Clone(decisions), func(d report.Decision) bool {
		return d.Effect == string(reach.EffectNone) && !slices.Contains([]reach.Reason{reach.ReasonValid, reach.ReasonMatchCondition, reach.ReasonErrorIgnored}, reach.Reason(d.Reason))
	})
	if check == nil || len(evaluated) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), explainLimit)
	defer cancel()
	warnings, err := check(ctx, c.ID, request)
	if err != nil {
		return nil // the decisions say enough
	}
	for _, w := range warnings {
		policy := reach.Finding{Kind: w.Kind, Name: w.Name}.Subject()
		if !slices.ContainsFunc(evaluated, func(d report.Decision) bool { return d.Subject == policy || strings.HasPrefix(d.Subject, policy+", ") }) {
			continue
		}
		for _, m := range c.configurations() {
			is := unstructured.Unstructured{Object: m.Object}
			if is.GetKind() != w.Kind || strings.TrimPrefix(is.GetName(), c.ID+"-") != w.Name {
				continue
			}
			for _, problem := range m.OfExpression(w.Field, w.Text) {
				texts = append(texts, fmt.Sprintf("%v (type check for %s)", problem, w.Object.Kind))
			}
			break
		}
	}
	return texts
}

// positions returns what adds the positions in the files of the user to texts about expressions: to how an API server and
// package reach begin to say something about one (k8s.io/apiserver/pkg/admission/plugin: cel/{condition,composition}.go,
// policy/validating/validator.go, policy/mutating/patch). An API server quotes the expression of a validation with a messageExpression if
// that gives no text.
func (c *Case) positions() *strings.Replacer {
	at := map[string]string{}
	for _, m := range c.configurations() {
		failed, of := "", "" // what an API server says of the last expression, and its field without the last name
		eachExpression(m.Object, "", func(field, variable, expression string) {
			problem := m.In(field, [2]int{1, 1}, "")
			if problem.Line == 0 {
				return // the scenario is not from a file
			}
			position := fmt.Sprintf(" (%s:%d:%d)", problem.File, problem.Line, problem.Column)
			if validation, is := strings.CutSuffix(field, ".messageExpression"); is && validation == of {
				at[failed] += fmt.Sprintf("; its messageExpression%s has an error, or gives no text of one line", position)
			}
			failed, of = "failed expression: "+strings.TrimSpace(expression), strings.TrimSuffix(field, ".expression")
			var says []string
			for _, text := range []string{expression, strings.TrimSpace(expression)} {
				for _, text := range []string{text, strings.ReplaceAll(text, "\n", " ")} {
					says = append(says, "xpression '"+text+"'")
					if trimmed := strings.TrimSpace(text); trimmed == text {
						says = append(says, "failed expression: "+text, "is false: "+text)
					}
				}
			}
			if variable != "" {
				says = []string{fmt.Sprintf("composited variable %q fails to evaluate", variable)}
			}
			for _, text := range says {
				if !strings.Contains(at[text], position) {
					at[text] = strings.TrimPrefix(at[text]+" or"+position, " or")
				}
			}
		})
	}
	var pairs []string
	for _, text := range slices.Backward(slices.SortedFunc(maps.Keys(at), func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })) {
		pairs = append(pairs, text, text+at[text]) // of expressions that begin alike, the longest is meant
	}
	return strings.NewReplacer(pairs...)
}

// eachExpression calls a function for each expression of a webhook configuration or policy, with its field. An
// expression of a variable has its name.
func eachExpression(value any, field string, do func(field, variable, expression string)) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			inner := value[name]
			here := strings.TrimPrefix(field+"."+name, ".")
			text, is := inner.(string)
			if !is {
				eachExpression(inner, here, do)
				continue
			}
			if lower := strings.ToLower(name); strings.HasSuffix(lower, "expression") && strings.TrimSpace(text) != "" {
				variable := ""
				if strings.HasPrefix(field, "spec.variables[") {
					variable, _ = value["name"].(string)
				}
				do(here, variable, text)
			}
		}
	case []any:
		for i, inner := range value {
			eachExpression(inner, fmt.Sprintf("%s[%d]", field, i), do)
		}
	}
}

// positioned returns the evidence with the positions of expressions.
func (c *Case) positioned(found *report.Evidence) {
	positions := c.positions()
	found.RefusedBy = positions.Replace(found.RefusedBy)
	for i := range found.Decisions {
		found.Decisions[i].Text = positions.Replace(found.Decisions[i].Text)
	}
	for i := range found.Mismatches {
		found.Mismatches[i].Actual = positions.Replace(found.Mismatches[i].Actual)
	}
	for i := range found.Causes {
		found.Causes[i] = positions.Replace(found.Causes[i])
	}
}
