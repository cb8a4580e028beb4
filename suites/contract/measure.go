package contract

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// answer is what a plugin made of a request, in both phases.
type answer struct {
	result harness.Result
	// err is why there is none: the plugin panicked.
	err error
}

func ask(ctx context.Context, h *harness.Harness, request framework.Request) answer {
	result, err := h.Run(ctx, request)
	return answer{result, err}
}

// asking is ask in a goroutine of its own, for plugins that may not return.
func asking(ctx context.Context, h *harness.Harness, request framework.Request) <-chan answer {
	done := make(chan answer, 1)
	go func() { done <- ask(ctx, h, request) }()
	return done
}

// askAll puts all requests of the Subject to a plugin, one after the other.
func (t *Trial) askAll(h *harness.Harness) []answer {
	var answers []answer
	for _, request := range t.Seeds() {
		answers = append(answers, ask(t.Context(), h, request))
	}
	return answers
}

// String says what came of it: "it was refused with 403 Forbidden (no such namespace)".
func (a answer) String() string {
	switch status := a.result.Status; {
	case a.err != nil:
		return "the plugin panicked (" + a.err.Error() + ")"
	case a.result.Err != nil:
		return fmt.Sprintf("it was refused with %d %s (%s)", status.Code, status.Reason, status.Message)
	default:
		return "it was admitted"
	}
}

// sameVerdict is whether both admit, or both refuse with the same code and reason. What
// messages say is for the properties of errors.
func sameVerdict(a, b answer) bool {
	x, y := a.result.Status, b.result.Status
	return (a.err == nil) == (b.err == nil) && (a.result.Err == nil) == (b.result.Err == nil) &&
		x.Code == y.Code && x.Reason == y.Reason
}

// unlike says how an answer differs from the one expected, in verdict and object.
// Empty means not at all.
func unlike(expected, got answer) string {
	switch {
	case !sameVerdict(expected, got):
		return fmt.Sprintf("expected that %s, observed that %s", expected, got)
	case got.err != nil || got.result.Err != nil || same(expected.result.Object, got.result.Object):
		return ""
	default:
		return "the object differs (- expected, + observed):\n" + diff(expected.result.Object, got.result.Object)
	}
}

// compare reports requests whose answer is not the one expected, and returns how many
// it could compare. Where the plugin's answers differ anyway, as again shows, it
// compares verdicts, or nothing; again may be nil.
func (t *Trial) compare(when string, expected, got []answer, again func() []answer) (compared int) {
	var second []answer
	for i, request := range t.Seeds() {
		if expected[i].err != nil {
			t.Logf("%s is not looked at: %v", request, expected[i].err)
			continue
		}
		compared++
		text := unlike(expected[i], got[i])
		if text == "" {
			continue
		}
		if second == nil && again != nil {
			second = again()
		}
		switch {
		case again == nil || unlike(expected[i], second[i]) == "":
		case !sameVerdict(expected[i], second[i]):
			t.Logf("%s is not looked at: its verdict differs from one plugin to the next", request)
			compared--
			continue
		case sameVerdict(expected[i], got[i]):
			continue // the object alone differs, as it does anyway
		}
		t.Errorf("%s %s: %s", request, when, text)
	}
	return compared
}

// raw returns a new plugin of the Subject that has been given nothing.
func (t *Trial) raw() admission.Interface {
	t.needPlugin()
	plugin, err := t.Subject.Source.Plugin(t.config())
	if err != nil {
		t.Fatalf("%v", err)
	}
	return plugin
}

// config is the Subject's configuration as a factory gets it.
func (t *Trial) config() io.Reader {
	if t.Subject.Config == "" {
		return nil
	}
	return strings.NewReader(t.Subject.Config)
}

// initializer gives what the Subject gives in a World; more takes the place of what has
// its name.
func (t *Trial) initializer(w *fakes.World, more ...fakes.Injector) *fakes.Initializer {
	var injectors []fakes.Injector
	if t.Subject.Inject != nil {
		injectors = t.Subject.Inject(w)
	}
	injectors = slices.DeleteFunc(slices.Clone(injectors), func(one fakes.Injector) bool {
		return slices.ContainsFunc(more, func(other fakes.Injector) bool { return one.Name() == other.Name() })
	})
	return fakes.NewInitializer(w, append(injectors, more...)...)
}

// buildBy is Build with an initializer of the caller's.
func (t *Trial) buildBy(w *fakes.World, initializer *fakes.Initializer) (*harness.Harness, error) {
	h, err := harness.Build(t, t.Subject.Source, append(t.plain(w), harness.WithInitializer(initializer))...)
	if err != nil {
		return nil, err
	}
	t.Cleanup(initializer.Drain)
	return h, nil
}

// injections returns the names of what a plugin was given, each once.
func injections(log []fakes.Injection) []string {
	var names []string
	for _, injection := range log {
		if !slices.Contains(names, injection.Interface) {
			names = append(names, injection.Interface)
		}
	}
	return names
}

// validateInitialization calls it and tells an error from a panic. Existing is false of
// plugins that have none.
func validateInitialization(plugin admission.Interface) (err error, thrown any, existing bool) { //nolint:staticcheck // a panic is not the error
	validator, ok := plugin.(admission.InitializationValidator)
	if !ok {
		return nil, nil, false
	}
	defer func() { thrown, existing = recover(), true }()
	return validator.ValidateInitialization(), nil, true
}

// panicked returns the panic of a plugin in an error.
func panicked(err error) (*harness.PanicError, bool) {
	var thrown *harness.PanicError
	return thrown, errors.As(err, &thrown)
}

// within waits for an answer no longer than this.
func within(limit time.Duration, done <-chan answer) (answer, bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case got := <-done:
		return got, true
	case <-timer.C:
		return answer{}, false
	}
}
