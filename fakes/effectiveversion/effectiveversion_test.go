package effectiveversion_test

import (
	"fmt"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/fakes/effectiveversion"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/component-base/compatibility"
)

// versioned is a plugin that wants the effective version.
type versioned struct {
	*admission.Handler

	got compatibility.EffectiveVersion
}

func (v *versioned) InspectEffectiveVersion(version compatibility.EffectiveVersion) { v.got = version }
func (v *versioned) ValidateInitialization() error                                  { return nil }

func TestInject(t *testing.T) {
	version := effectiveversion.New(t, "1.36.3", "1.35")
	i := fakes.NewInitializer(nil, effectiveversion.Inject(version)).Strict()
	plugin := &versioned{}
	i.Initialize(plugin)
	if err := i.Err(); err != nil {
		t.Error(err)
	}
	if plugin.got != version || version.BinaryVersion().String() != "1.36.3" || version.EmulationVersion().String() != "1.35" {
		t.Errorf("got %v", plugin.got)
	}
}

// stopping is a test that keeps what ended it.
type stopping struct{ text string }

func (s *stopping) Helper()               {}
func (s *stopping) Logf(string, ...any)   {}
func (s *stopping) Errorf(string, ...any) {}
func (s *stopping) Cleanup(func())        {}
func (s *stopping) Fatalf(format string, args ...any) {
	s.text = fmt.Sprintf(format, args...)
}

func TestNewOfBadVersions(t *testing.T) {
	for _, test := range []struct{ binary, emulation, want string }{
		{"1.36", "1.36", ""},
		{"1.36.3", "1.33", ""},
		{"one", "1.36", `effective version: read binary version: could not parse "one" as version: give it as "1.36"`},
		{"1.36", "", `effective version: read emulation version: could not parse "" as version: give it as "1.36", or the binary version to emulate none`},
		{"1.36", "1.37", `effective version: emulate 1.37 by an API server of 1.36: emulation version 1.37 is not between [1.33, 1.36.0]`},
		{"1.36", "1.32", `effective version: emulate 1.32 by an API server of 1.36: emulation version 1.32 is not between [1.33, 1.36.0]`},
	} {
		t.Run(test.binary+" "+test.emulation, func(t *testing.T) {
			recording := &stopping{}
			effectiveversion.New(recording, test.binary, test.emulation)
			if recording.text != test.want {
				t.Errorf("%s, %s: %s\nwant %s", test.binary, test.emulation, recording.text, test.want)
			}
		})
	}
}
