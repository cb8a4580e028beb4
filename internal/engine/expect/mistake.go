package expect

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/kinds"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// MistakeError is what an API server found wrong in the manifests of a scenario, with the
// positions in its files.
type MistakeError struct {
	// Problems has at least one.
	Problems []*scenario.Error
	// Cause is the error of the request, or nil.
	Cause error
}

// Error returns a line for each problem.
func (m *MistakeError) Error() string {
	lines := make([]string, len(m.Problems))
	for i, problem := range m.Problems {
		lines[i] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the error of the request.
func (m *MistakeError) Unwrap() error { return m.Cause }

// IsMistake reports whether an error is a MistakeError or wraps one: its cause is in the files of the scenario.
func IsMistake(err error) bool {
	var mistake *MistakeError
	return errors.As(err, &mistake)
}

// With strict field validation, an API server names unknown fields and duplicate fields
// (k8s.io/apimachinery/pkg/runtime/error.go, sigs.k8s.io/json). Without a fieldValidation it sends
// the same texts as warnings.
var fieldProblem = regexp.MustCompile(`(unknown|duplicate) field "([^"]+)"`)

const strictPrefix = "strict decoding error: "

// Manifest is a manifest of a file, and how errors about it are written.
type Manifest struct {
	// Object is the manifest as decoded JSON.
	Object map[string]any
	// Name names the manifest: "given[1] ConfigMap a".
	Name string
	// At returns an error about a field, with its position.
	At func(field, message, hint string) *scenario.Error
	// In returns an error about a character in the text of a field: at its line and column in the text.
	In func(field string, at [2]int, message string) *scenario.Error
	// Private is true if no error shows a value of the manifest.
	Private bool
}

// OfRefusal returns a MistakeError if an API server refused the manifest because it is not valid. It
// returns any other error unchanged.
func (m Manifest) OfRefusal(err error) error {
	var refusal apierrors.APIStatus
	if err == nil || !errors.As(err, &refusal) {
		return err
	}
	status := refusal.Status()
	if byAdmission(status.Message) || status.Code != http.StatusBadRequest && status.Code != http.StatusUnprocessableEntity {
		return err
	}
	problems := m.fieldProblems(status.Message)
	if len(problems) == 0 && status.Details != nil {
		for _, cause := range status.Details.Causes {
			found := m.OfExpression(cause.Field, cause.Message)
			if len(found) == 0 {
				found = []*scenario.Error{m.At(cause.Field, fmt.Sprintf("%s: %s: %s", m.Name, cause.Field, m.shown(cause.Message)), "")}
			}
			problems = append(problems, found...)
		}
	}
	if len(problems) == 0 {
		problems = append(problems, m.At("", fmt.Sprintf("%s: the API server refuses it: %s", m.Name, m.shown(status.Message)), ""))
	}
	if m.Private {
		err = errors.New("the API server refuses it" + notShown)
	}
	return &MistakeError{Problems: problems, Cause: err}
}

// expressionError matches what the CEL compiler says about an expression, which is followed by the line of
// the expression and a mark (github.com/google/cel-go/common/error.go).
var expressionError = regexp.MustCompile(`ERROR: <input>:(\d+):(\d+): ([^\n]*)`)

// OfExpression returns what a message of the CEL compiler says about an expression in a field, at the
// positions in the file. It returns none for another message.
func (m Manifest) OfExpression(field, message string) []*scenario.Error {
	var problems []*scenario.Error
	for _, found := range expressionError.FindAllStringSubmatch(message, -1) {
		line, _ := strconv.Atoi(found[1])
		column, _ := strconv.Atoi(found[2])
		said := strings.TrimSuffix(found[3], " (in container '')") // that container is the whole program
		problems = append(problems, m.In(field, [2]int{line, column}, fmt.Sprintf("%s: %s: %s", m.Name, field, said)))
	}
	return problems
}

// OfWarning returns the error of a warning that names an unknown or duplicate field of the manifest,
// or nil for another warning.
func (m Manifest) OfWarning(warning string) *scenario.Error {
	if found := fieldProblem.FindStringSubmatch(warning); found != nil && found[0] == warning {
		return m.fieldError(found[1], found[2])
	}
	return nil
}

// notShown says why a message of an API server is not complete.
const notShown = " (the message is not shown, because it can contain values from the file)"

// shown returns a message of an API server about the manifest, without what is not shown.
func (m Manifest) shown(message string) string {
	if m.Private {
		return "not valid" + notShown
	}
	return message
}

// byAdmission reports whether a policy or webhook refused, whatever its code.
func byAdmission(message string) bool {
	return strings.Contains(message, "' denied request: ") || strings.Contains(message, `" denied request: `) || strings.Contains(message, "admission webhook ")
}

// fieldProblems returns the fields that a message of an API server names as unknown or duplicate.
func (m Manifest) fieldProblems(message string) []*scenario.Error {
	_, list, ok := strings.Cut(message, strictPrefix)
	if !ok {
		return nil
	}
	var problems []*scenario.Error
	for _, found := range fieldProblem.FindAllStringSubmatch(list, -1) {
		problems = append(problems, m.fieldError(found[1], found[2]))
	}
	return problems
}

// steps returns the steps of a path: those in brackets are items of lists.
func steps(path string) []any {
	var all []any
	for _, step := range objects.SplitPath(path) {
		if index, err := strconv.Atoi(step); err == nil {
			all = append(all, index)
		} else {
			all = append(all, step)
		}
	}
	return all
}

// fieldError describes an unknown or duplicate field of the manifest.
func (m Manifest) fieldError(what, field string) *scenario.Error {
	apiVersion, _ := m.Object["apiVersion"].(string)
	kind, _ := m.Object["kind"].(string)
	name := field[strings.LastIndex(field, ".")+1:]
	hint := "check its name and indentation"
	if what == "duplicate" {
		hint = "remove one of them"
	} else if missing, _ := kinds.MissingInKind(schema.FromAPIVersionAndKind(apiVersion, kind), steps(field)); missing != nil {
		hint = cmp.Or(strings.TrimPrefix(suggest.DidYouMean(name, missing.Names), "; "), hint)
	}
	return m.At(field, fmt.Sprintf("%s: %s field %q; expected a field of the API server's %s %s", m.Name, what, field, apiVersion, kind), hint)
}
