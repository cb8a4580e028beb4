package engine

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/target"
)

// install installs what all scenarios of the run share, and waits until the API server acts on it.
func (r *run) install(ctx context.Context, target target.Target) error {
	project := r.options.Install
	manifests := project.Objects()
	if len(manifests) == 0 {
		return nil
	}
	r.options.Progress.Stage(fmt.Sprintf("installing %d objects for all scenarios", len(manifests)))
	err := target.InstallForRun(ctx, manifests)
	if err == nil {
		err = misspeltRules(target, project)
	}
	if err == nil {
		err = target.WaitUntilEffective(ctx, manifests)
	}
	var one *framework.ManifestError
	if ctx.Err() == nil && errors.As(err, &one) {
		return ofProject(project, one)
	}
	return err
}

// misspeltRules returns scenario.Errors for webhooks, policies and bindings that match nothing, because something in
// their rules is misspelt.
func misspeltRules(on target.Target, project *shipped.Project) error {
	var errs []error
	for i, manifest := range project.Objects() {
		errs = append(errs, execution.MisspeltRules(on, execution.InProject(project, i, object.Describe(manifest)))...)
	}
	return errors.Join(errs...)
}

// ofProject returns the error of one manifest with its position. If the API server refused it as not
// valid, or cannot have it, the errors are scenario.Errors: the cause is in the file.
func ofProject(project *shipped.Project, failed *framework.ManifestError) error {
	m := execution.InProject(project, failed.Index, object.Describe(project.Manifests[failed.Index].Object))
	var wrong *expect.MistakeError
	if errors.As(m.OfRefusal(failed.Err), &wrong) {
		errs := make([]error, len(wrong.Problems))
		for i, problem := range wrong.Problems {
			errs[i] = problem
		}
		return errors.Join(errs...)
	}
	located := m.At(failed.Field, failed.Err.Error(), "")
	var status apierrors.APIStatus
	if errors.As(failed.Err, &status) || errors.Is(failed.Err, framework.ErrNoResponse) || errors.Is(failed.Err, framework.ErrTimeout) {
		return fmt.Errorf("%s:%d: %s: %w", located.File, located.Line, m.Name, failed.Err)
	}
	return located
}
