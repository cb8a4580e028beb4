package removal

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
)

// CleanupOptions configure Cleanup. The zero value removes what every run left that is
// not alive.
type CleanupOptions struct {
	// Run is the ID of the only run to remove. Empty means all.
	Run string
	// DryRun finds objects and removes nothing.
	DryRun bool
}

// Cleanup removes what runs left, and waits until it is gone. It returns the objects that
// it found: RESOURCE.GROUP/NAME. Runs that are alive are
// passed over; to name one is an error. The error also names what is left.
func (r *Remover) Cleanup(ctx context.Context, options CleanupOptions) ([]string, error) {
	runs, err := Runs(ctx, r.Client)
	if apierrors.IsForbidden(err) {
		r.Progress("cannot find out which runs are alive: the user has no right to list configmaps")
		err = nil
	}
	if err != nil {
		return nil, err
	}
	alive := map[string]bool{}
	for id, run := range runs {
		if !run.Alive() {
			continue
		}
		if id == options.Run {
			return nil, fmt.Errorf("remove what run %s left: the run is alive: stop it, or wait %s if it was killed", run, aliveFor)
		}
		if options.Run == "" {
			r.Progress(fmt.Sprintf("ignoring run %s, which is alive", run))
		}
		alive[id] = true
	}
	wanted := func(run string) bool { return !alive[run] && (options.Run == "" || run == options.Run) }
	which := selection{labels: selectorWithout(options.Run, alive)}
	all := r.Client.Resources.Deletable(true)
	if !options.DryRun {
		if err := r.recreateNamespaces(ctx, wanted, all); err != nil {
			return nil, err
		}
	}
	if which.runs, err = r.runsOf(ctx, which.labels, runs); err != nil {
		return nil, err
	}
	which.runs = slices.DeleteFunc(which.runs, func(run string) bool { return !wanted(run) })
	found, err := r.left(ctx, which)
	if err != nil || len(found) == 0 || options.DryRun {
		return found, err
	}
	// The signs are removed last: they say who ran it.
	if err := r.remove(ctx, selection{which.labels + ",!" + signLabel, which.runs}, all); err != nil {
		return found, err
	}
	if err := r.removeNamespaces(ctx, which, all); err != nil {
		return found, err
	}
	return found, r.waitForNamespaces(ctx, which)
}

// runsOf returns the runs that have a sign or a namespace.
func (r *Remover) runsOf(ctx context.Context, selector string, runs map[string]Run) ([]string, error) {
	all := map[string]bool{}
	for id := range runs {
		all[id] = true
	}
	list, err := r.Client.List(ctx, namespaces(), "", metav1.ListOptions{LabelSelector: selector})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	if err == nil {
		for _, item := range list.Items {
			if run := item.Labels[install.RunLabel]; run != "" { // an API server can ignore selectors
				all[run] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// selectorWithout returns the label selector of a run, or of all runs that are not alive.
func selectorWithout(run string, alive map[string]bool) string {
	if run != "" || len(alive) == 0 {
		return Selector(run)
	}
	return install.RunLabel + "," + install.RunLabel + " notin (" + strings.Join(slices.Sorted(maps.Keys(alive)), ",") + ")"
}

// left returns the cluster-scoped objects that belong to runs, namespaces included.
func (r *Remover) left(ctx context.Context, which selection) ([]string, error) {
	var found []string
	resources := slices.DeleteFunc(r.Client.Resources.Deletable(false), func(res client.Resource) bool {
		return res.GroupVersionResource == client.Namespaces()
	})
	for _, res := range append(resources, namespaces()) {
		objects, err := r.owned(ctx, res, which)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			found = append(found, o.Key())
		}
	}
	return found, nil
}
