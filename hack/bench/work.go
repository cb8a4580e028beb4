package main

import (
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// work is the amount of work that scenarios cause at an API server.
type work struct {
	namespaces, configurations, writes int
}

// workOf counts the work of scenarios. A configuration is an object of
// admissionregistration.k8s.io that is installed or removed. A write is any other given object
// or a request of a step.
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
	if version, _ := manifest["apiVersion"].(string); strings.HasPrefix(version, "admissionregistration.k8s.io/") {
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
