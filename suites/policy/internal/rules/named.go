package rules

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// storedSample is a sample or its fix that is stored under its own name.
type storedSample struct {
	sample
	manifest map[string]any
	kept     *unstructured.Unstructured
}

// underOwnNames sends the requests about stored samples of which no copy can be stored, or about whose names the policies decide: each is
// stored under its own name while no policy is bound. It is for after all other requests.
func (b *bench) underOwnNames(ctx context.Context) error {
	samples := slices.DeleteFunc(slices.Clone(b.samples), func(s sample) bool {
		c := b.sampleCase(s)
		return s.stored != nil || !c.Accepted() || b.addressed(s.Object).GetName() == "" || b.copied[s.Name] && !b.observed.decidedByName(c)
	})
	if len(samples) == 0 {
		return nil
	}
	var all []storedSample
	err := b.unbound(ctx, func() (err error) {
		all, err = b.storeNamed(ctx, samples)
		for _, each := range all {
			if each.fix == nil {
				b.about(each.sample, each.kept)
			} else if len(each.whole) > 0 {
				b.violations(ctx, each.sample, nil, each.kept)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := b.unbound(ctx, func() error {
		for _, each := range all {
			if each.fix == nil {
				b.do(ctx, withFinalizers(each.kept, fmt.Sprintf("[%q]", finalizer)))
				b.end(ctx, each.sample, each.kept)
			}
		}
		return b.err
	}); err != nil {
		return err
	}
	if err := b.only(ctx, func(binding) bool { return false }); err != nil {
		return err
	}
	for _, each := range all {
		if each.fix == nil {
			b.do(ctx, withFinalizers(each.kept, "null"))
		}
	}
	return b.err
}

// storeNamed stores good samples and the fixes of bad ones under their own names. Of several with the same name, only those are stored that
// are as the first one.
func (b *bench) storeNamed(ctx context.Context, samples []sample) ([]storedSample, error) {
	var all []storedSample
	for _, s := range samples {
		s.own = true
		manifest := s.Object
		if s.fix != nil {
			manifest = s.fix
		}
		u := b.addressed(manifest)
		if at := slices.IndexFunc(all, func(o storedSample) bool {
			return o.kind == s.kind && o.kept.GetNamespace() == u.GetNamespace() && o.kept.GetName() == u.GetName()
		}); at >= 0 {
			if reflect.DeepEqual(all[at].manifest, manifest) {
				all = append(all, storedSample{s, manifest, all[at].kept})
			}
			continue
		}
		switch err := b.sandbox.Install(ctx, u.Object, nil); {
		case errors.As(err, new(apierrors.APIStatus)):
			continue // the sample alone is accepted, but not beside the others
		case err != nil:
			return nil, fmt.Errorf("store %s under its own name: %w", s.Name, err)
		}
		if kept := b.get(ctx, s.kind, u, ""); kept != nil {
			all = append(all, storedSample{s, manifest, kept})
		}
	}
	return all, b.err
}

// unbound adds requests while no policy is bound, and sends them then, and again with the policies and their params.
func (b *bench) unbound(ctx context.Context, add func() error) error {
	n := len(b.observed.Cases)
	err := b.only(ctx, func(binding) bool { return false })
	for _, each := range b.subject.params() {
		if err == nil {
			err = b.sandbox.Install(ctx, each.object.Object, nil)
		}
	}
	for _, step := range []func() error{
		add,
		func() error { return b.grant(ctx) },
		func() error { return b.send(ctx, b.observed.Cases[n:], before) },
		func() error { return b.only(ctx, func(binding) bool { return true }) },
		func() error { return b.sandbox.WaitForParams(ctx) },
		func() error {
			return b.send(ctx, slices.DeleteFunc(slices.Clone(b.observed.Cases[n:]), func(c *Case) bool { return !c.Accepted() }), after)
		},
	} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		b.observed.Cases = b.observed.Cases[:n]
	}
	return err
}
