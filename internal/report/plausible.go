package report

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/admissiontest/admissiontest/framework"
)

// The plausible minor versions of Kubernetes 1: from the oldest minor that the catalogue supports
// to a few minors after the newest known one. See https://kubernetes.io/releases/.
const (
	oldestMinor = 25
	newestMinor = 37
	futureMinor = newestMinor + 3
)

// ImplausibleVersion returns why a version ("v1.36.3") that a server reports is not plausible: it
// cannot be read, or is not a known version of Kubernetes. Empty if it is plausible. Nothing can be
// concluded about a server with an implausible version, because the version decides which
// requirements apply.
func ImplausibleVersion(server string) string {
	got, err := version.ParseGeneric(server)
	switch {
	case err != nil:
		return fmt.Sprintf("the server reports the version %q, which cannot be read: want one like v1.%d.0", server, newestMinor)
	case got.Major() != 1, got.Minor() < oldestMinor, got.Minor() > futureMinor:
		return fmt.Sprintf("the server reports the version %q: want one from v1.%d to v1.%d, which are the versions that are known or expected soon", server, oldestMinor, futureMinor)
	}
	return ""
}

// implausible is ImplausibleVersion for the version of the target. Empty if there was no target.
func (t TargetInfo) implausible() string {
	if t.Kind == KindWebhook || t.Kind == "" { // there is no API server
		return ""
	}
	return ImplausibleVersion(t.ServerVersion)
}

// WhyNothing returns why the whole run says nothing about the server: the version of the server is
// not plausible, or the exit code is ExitNothing. Empty if the run does say something.
func (r Report) WhyNothing(strict bool) string {
	if reason := r.Target.implausible(); reason != "" {
		return "inconclusive: " + printable(reason)
	}
	r = r.Ordered()
	switch {
	case r.ExitCode(strict) != ExitNothing:
		return ""
	case r.Summary.Total == 0:
		return "nothing was selected"
	case r.judged():
		return fmt.Sprintf("nothing passed: %s", r.Summary)
	default:
		return fmt.Sprintf("nothing could be judged: %s", r.Summary)
	}
}

// judged reports whether any outcome is a pass or a fail.
func (r Report) judged() bool {
	return slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return o.Verdict == framework.Pass || o.Verdict == framework.Fail })
}
