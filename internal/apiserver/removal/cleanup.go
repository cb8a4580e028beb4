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
	"github.com/admissiontest/admissiontest/internal/apiserver/journal"
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
// it found: RESOURCE.GROUP/NAME or RESOURCE.GROUP/NAMESPACE/NAME. Runs that are alive are
// passed over; to name one is an error. The error also names what is left.
func (r *Remover) Cleanup(ctx context.Context, options CleanupOptions) ([]string, error) {
	runs, err := journal.List(ctx, r.Client)
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
			return nil, fmt.Errorf("remove what run %s left: the run is alive: stop it, or wait %s if it was killed", run, journal.Duration)
		}
		if options.Run == "" {
			r.Progress(fmt.Sprintf("ignoring run %s, which is alive", run))
		}
		alive[id] = true
	}
	r.Listed = func(run string) []string { return runs[run].Objects }
	wanted := func(run string) bool { return !alive[run] && (options.Run == "" || run == options.Run) }
	selector := selectorWithout(options.Run, alive)
	for id, run := range runs {
		if wanted(id) {
			for _, res := range run.Resources { // discovery can leave out what it had then
				r.Client.Resources.AddStored(res)
			}
		}
	}
	all := r.Client.Resources.Deletable(true)
	if !options.DryRun {
		if err := r.recreateNamespaces(ctx, wanted, all); err != nil {
			return nil, err
		}
	}
	which := selection{labels: selector}
	if which.runs, err = r.runsOf(ctx, selector, runs); err != nil {
		return nil, err
	}
	which.runs = slices.DeleteFunc(which.runs, func(run string) bool { return !wanted(run) })
	found, err := r.left(ctx, which)
	if err != nil {
		return nil, err
	}
	dead := slices.DeleteFunc(slices.Sorted(maps.Keys(runs)), func(run string) bool { return !wanted(run) })
	foreign, err := r.foreign(ctx, dead)
	for _, o := range foreign {
		found = append(found, o.Key())
	}
	if err != nil || len(found) == 0 || options.DryRun {
		return found, err
	}
	return found, r.cleanup(ctx, which, foreign, all)
}

// runsOf returns the runs that have a journal or a namespace.
func (r *Remover) runsOf(ctx context.Context, selector string, runs map[string]journal.Run) ([]string, error) {
	all := maps.Clone(runs)
	if all == nil {
		all = map[string]journal.Run{}
	}
	list, err := r.Client.List(ctx, namespaces(), "", metav1.ListOptions{LabelSelector: selector})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	if err == nil {
		for _, item := range list.Items {
			if run := item.Labels[install.RunLabel]; run != "" { // an API server can ignore selectors
				all[run] = journal.Run{}
			}
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// cleanup removes the journals last: they say what else belongs to a run.
func (r *Remover) cleanup(ctx context.Context, which selection, foreign []client.Object, all []client.Resource) error {
	if err := r.remove(ctx, selection{which.labels + ",!" + journal.Label, which.runs}, foreign, all); err != nil {
		return err
	}
	if err := r.removeNamespaces(ctx, which, all); err != nil {
		return err
	}
	return r.waitForNamespaces(ctx, which)
}

// selectorWithout returns the label selector of a run, or of all runs that are not alive.
func selectorWithout(run string, alive map[string]bool) string {
	if run != "" || len(alive) == 0 {
		return Selector(run)
	}
	return install.RunLabel + "," + install.RunLabel + " notin (" + strings.Join(slices.Sorted(maps.Keys(alive)), ",") + ")"
}

// left returns the cluster-scoped objects that belong to runs, namespaces included.
// (Namespaced objects are in these, but for those that foreign returns.)
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

// foreign returns the listed objects of runs that are in namespaces of other clients
// and that their run created, by their field manager.
func (r *Remover) foreign(ctx context.Context, runs []string) ([]client.Object, error) {
	var found []client.Object
	for _, run := range runs {
		for _, entry := range r.listed(run) {
			key, _, _ := strings.Cut(entry, " ")
			o, served := r.Client.Resources.ObjectOf(key)
			if !served || o.Namespace == "" {
				continue
			}
			current, err := r.Client.Get(ctx, o)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			o.UID = current.GetUID()
			known := slices.ContainsFunc(found, func(other client.Object) bool { return other.UID == o.UID })
			if known || !r.isListed(current, o, run) {
				continue // another client created it
			}
			found = append(found, o)
		}
	}
	return found, nil
}
