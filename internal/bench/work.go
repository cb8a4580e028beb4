package main

import (
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// work is the size of what scenarios make an API server do.
type work struct {
	namespaces, configurations, writes int
}

// workOf counts. A configuration is anything that decides about requests; a write
// is a request that a step sends.
func workOf(all []scenario.Scenario) work {
	w := work{namespaces: len(all)}
	for _, s := range all {
		for _, manifest := range s.Spec.Given {
			w.object(manifest)
		}
		w.steps(s.Spec.When)
		for _, h := range s.Spec.Hooks {
			w.steps(h.Meanwhile)
			for _, reply := range h.Replies {
				w.steps(reply.Meanwhile)
			}
		}
	}
	return w
}

func (w *work) object(manifest map[string]any) {
	if manifest["apiVersion"] == "admissionregistration.k8s.io/v1" {
		w.configurations++
	} else {
		w.writes++
	}
}

func (w *work) steps(steps []scenario.Step) {
	for _, step := range steps {
		switch {
		case step.Parallel != nil:
			w.steps(step.Parallel)
		case step.Install != nil:
			for _, manifest := range step.Install {
				w.object(manifest)
			}
		case step.Remove != nil:
			w.configurations += len(step.Remove)
		case step.Script != nil:
		default:
			w.writes++
		}
	}
}
