package execution

import (
	"fmt"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// EachStep calls a function for each step of a scenario that sends requests, parallel
// steps and the steps of a Meanwhile included, until it returns an error, which EachStep returns.
// Where describes the place of the step: "step 2, parallel 1".
func EachStep(spec scenario.Spec, do func(where string, step scenario.Step) error) error {
	if err := inHooks(spec.Hooks, do); err != nil {
		return err
	}
	return steps("step", spec.When, do)
}

// inHooks is EachStep for the steps of a Meanwhile.
func inHooks(hooks map[string]scenario.Hook, do func(where string, step scenario.Step) error) error {
	for name, h := range hooks {
		for _, reply := range append([]scenario.Reply{h.Reply}, h.Replies...) {
			if err := steps("meanwhile of "+name, reply.Meanwhile, do); err != nil {
				return err
			}
		}
	}
	return nil
}

func steps(where string, list []scenario.Step, do func(where string, step scenario.Step) error) error {
	for i, step := range list {
		at := fmt.Sprintf("%s %d", where, i+1)
		err := steps(at+", parallel", step.Parallel, do)
		if err == nil {
			err = inHooks(step.Script, do)
		}
		if err == nil && step.Parallel == nil {
			err = do(at, step)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
