package reference

import (
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// TestVerdicts fails if a plugin refuses a request of Subject.Allow, or admits one of
// Subject.Reject. Such a request would not reach the code that it is meant to reach.
func TestVerdicts(t *testing.T) {
	for name, made := range entries() {
		t.Run(name, func(t *testing.T) {
			entry := made()
			if entry.start != nil {
				entry.start(t, &entry.subject)
			}
			subject := entry.subject
			for i, request := range append(subject.Allow[:len(subject.Allow):len(subject.Allow)], subject.Reject...) {
				w := fakes.NewWorld(t, subject.World...)
				options := []harness.Option{harness.WithWorld(w)}
				if subject.Scheme != nil {
					options = append(options, harness.WithScheme(subject.Scheme))
				}
				if subject.Config != "" {
					options = append(options, harness.WithConfig(subject.Config))
				}
				if subject.Inject != nil {
					options = append(options, harness.WithInjectors(subject.Inject(w)...))
				}
				res := harness.New(t, subject.Source, options...).Do(request)
				if allow := i < len(subject.Allow); allow != (res.Err == nil) {
					t.Errorf("%s: under Allow: %t\n%s", request, allow, res)
				}
			}
		})
	}
}
