package report

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/admissiontest/admissiontest/framework"
)

// The minor versions of Kubernetes 1 that a server can have: from the oldest one that the
// catalogue is for to a few after the newest one that is known. See
// https://kubernetes.io/releases/.
const (
	oldestMinor = 25
	newestMinor = 36
	futureMinor = newestMinor + 3
)

// ImplausibleVersion returns why nothing can be concluded about a server that reports this
// version ("v1.36.3"), or "": the version cannot be read, or it is not a version of
// Kubernetes as far as is known. Whether a requirement applies depends on the version.
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

// implausible is ImplausibleVersion, and "" if there was no target.
func (t TargetInfo) implausible() string {
	if t.Kind == "" {
		return ""
	}
	return ImplausibleVersion(t.ServerVersion)
}

// WhyNothing returns why the whole run says nothing about the server, or "": its version
// is not plausible, or the exit code is ExitNothing.
func (r Report) WhyNothing(strict bool) string {
	if reason := r.Target.implausible(); reason != "" {
		return "inconclusive: " + printable(reason)
	}
	r = r.ordered()
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

// judged reports whether the server was judged in any outcome.
func (r Report) judged() bool {
	return slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return o.Verdict == framework.Pass || o.Verdict == framework.Fail })
}
