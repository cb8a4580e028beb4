package rules_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/randfill"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
	"github.com/admissiontest/admissiontest/suites/contract/internal/rules"
)

// images sets one of a few images, so that fuzzing finds those that a plugin knows.
func images(container *corev1.Container, c randfill.Continue) {
	c.FillNoCustom(container)
	container.Image = []string{"example.com/c", "", "latest"}[c.Intn(3)]
}

func FuzzSound(f *testing.F) {
	subject := mutant{build: func(p *sound) admission.Interface { return p }}.of()
	for i := range subject.Requests() {
		for _, more := range []string{"", "\x00", "\x01seed", "\xffanother seed"} {
			f.Add(append([]byte{byte(i)}, more...))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if outcome := rules.Fuzzed(subject, data, images); outcome.Verdict == framework.Fail {
			t.Error(outcome.Reason)
		}
	})
}

// planted is sound with a bug that only unusual objects show.
type planted struct {
	*sound
	admit, validate func(*sound, *corev1.Pod, admission.Attributes) error
}

func (p *planted) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if err := p.sound.Admit(ctx, a, o); err != nil || p.admit == nil {
		return err
	}
	if pod, ok := a.GetObject().(*corev1.Pod); ok {
		return p.admit(p.sound, pod, a)
	}
	return nil
}

func (p *planted) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if pod, ok := a.GetObject().(*corev1.Pod); ok && p.validate != nil {
		if err := p.validate(p.sound, pod, a); err != nil {
			return err
		}
	}
	return p.sound.Validate(ctx, a, o)
}

// plants returns bugs by the prefix of their message.
func plants() map[string]planted {
	return map[string]planted{
		"P1: ": {validate: func(_ *sound, pod *corev1.Pod, _ admission.Attributes) error {
			for _, volume := range pod.Spec.Volumes {
				_ = volume.EmptyDir.Medium
			}
			return nil
		}},
		"V1: ": {validate: func(_ *sound, pod *corev1.Pod, _ admission.Attributes) error {
			if pod.Spec.SecurityContext != nil {
				pod.Spec.HostNetwork = !pod.Spec.HostNetwork
			}
			return nil
		}},
		"O1: ": {admit: func(_ *sound, pod *corev1.Pod, a admission.Attributes) error {
			if old, ok := a.GetOldObject().(*corev1.Pod); ok && pod.Spec.NodeName != "" {
				old.Spec.NodeName = pod.Spec.NodeName
			}
			return nil
		}},
		"C1: ": {admit: func(s *sound, pod *corev1.Pod, a admission.Attributes) error {
			if namespace, err := s.namespaces.Get(a.GetNamespace()); err == nil && pod.Spec.PriorityClassName != "" {
				namespace.Labels = map[string]string{"priority": pod.Spec.PriorityClassName}
			}
			return nil
		}},
		"A1: ": {admit: func(_ *sound, pod *corev1.Pod, _ admission.Attributes) error {
			if pod.Spec.Affinity != nil {
				pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{})
			}
			return nil
		}},
		"E1: ": {validate: func(_ *sound, pod *corev1.Pod, _ admission.Attributes) error {
			if pod.Spec.Overhead != nil {
				return errors.New("no overhead")
			}
			return nil
		}},
	}
}

func (p planted) subject() check.Subject {
	return mutant{build: func(s *sound) admission.Interface { return &planted{s, p.admit, p.validate} }}.of()
}

func TestFuzzFindsPlantedBugs(t *testing.T) {
	for prefix, plant := range plants() {
		t.Run(strings.TrimSuffix(prefix, ": "), func(t *testing.T) {
			subject := plant.subject()
			for i := range append(subject.Allow, subject.Reject...) {
				if outcome := rules.Fuzzed(subject, []byte{byte(i)}); outcome.Verdict != framework.Pass {
					t.Errorf("request %d without random values: got %s, want pass: %s", i, outcome.Verdict, outcome.Reason)
				}
			}
			for i := range 64 {
				data := fmt.Appendf([]byte{byte(i % 3), 0}, "seed %d", i)
				outcome := rules.Fuzzed(subject, data, images)
				if outcome.Verdict != framework.Fail {
					continue
				}
				for line := range strings.Lines(outcome.Reason) {
					if len([]rune(line)) > 300 {
						t.Errorf("a line of the message has %d letters: %.300s", len(line), line)
					}
				}
				if !strings.HasPrefix(outcome.Reason, prefix) {
					t.Errorf("data %q fails with %q, want %q", data, outcome.Reason, prefix)
				}
				return
			}
			t.Errorf("none of 64 objects shows the bug")
		})
	}
}

func TestFuzzReportsPanicOfFillFunction(t *testing.T) {
	broken := func(*corev1.Container, randfill.Continue) { panic("no containers today") }
	subject := planted{}.subject()
	var outcome rule.Outcome
	for i := range 64 {
		if outcome = rules.Fuzzed(subject, fmt.Appendf([]byte{0, 0}, "%d", i), broken); outcome.Verdict == framework.Fail {
			break
		}
	}
	for _, want := range []string{"no containers today", "fill the object of create Pod default/subject", "contract.Fuzz"} {
		if !strings.Contains(outcome.Reason, want) {
			t.Errorf("%s: %q, want %q in it", outcome.Verdict, outcome.Reason, want)
		}
	}
}
