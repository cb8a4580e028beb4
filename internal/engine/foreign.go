package engine

import (
	"fmt"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// foreign returns a framework.ErrForeign if a step of the scenario is for what belongs to
// other clients of the API server, as far as that is known before the scenario runs.
// Sandbox.Do refuses the rest.
func (c *scenarioCase) foreign() error {
	confined := c.target.Optional().Confined
	if confined == nil {
		return nil
	}
	return eachStep(c.scenario.Spec, func(where string, raw scenario.Step) error {
		step, err := substitute(raw, c.lookup)
		if err != nil {
			return nil //nolint:nilerr // a placeholder of a result is not known yet
		}
		request, _, err := c.compose(step)
		if err != nil {
			return nil //nolint:nilerr // not a request, or the step itself reports it
		}
		if err := confined(c.id, request); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		return nil
	})
}

// eachStep calls a function for each step of a scenario that sends requests, parallel
// steps and those of a Meanwhile included, until it returns an error.
func eachStep(spec scenario.Spec, do func(where string, step scenario.Step) error) error {
	for name, h := range spec.Hooks {
		for _, reply := range append([]scenario.Reply{h.Reply}, h.Replies...) {
			if err := steps("meanwhile of "+name, reply.Meanwhile, do); err != nil {
				return err
			}
		}
	}
	return steps("step", spec.When, do)
}

func steps(where string, list []scenario.Step, do func(where string, step scenario.Step) error) error {
	for i, step := range list {
		at := fmt.Sprintf("%s %d", where, i+1)
		err := steps(at+", parallel", step.Parallel, do)
		if err == nil && step.Parallel == nil {
			err = do(at, step)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
