package engine

import (
	"cmp"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// OtherMinor returns why a server of a version ("v1.36.3") is too old or too new for the scenario, or
// "".
func OtherMinor(s scenario.Scenario, server string) string {
	since, until := s.Spec.Since, s.Spec.Until
	needed := "needs Kubernetes " + since
	switch {
	case since == "" && until == "":
		return ""
	case since == "":
		needed = "needs Kubernetes " + until + " or older"
	case until != "" && until != since:
		needed += " to " + until
	}
	have, err := version.ParseGeneric(server)
	if err != nil {
		return fmt.Sprintf("%s; the version of the server is not known: %v", needed, err)
	}
	minor := version.MajorMinor(have.Major(), have.Minor()) // 1.36.3 is not newer than 1.36
	toSince, sinceErr := minor.Compare(cmp.Or(since, minor.String()))
	toUntil, untilErr := minor.Compare(cmp.Or(until, minor.String()))
	switch err := errors.Join(sinceErr, untilErr); {
	case err != nil:
		return fmt.Sprintf("%s, which is not a version: %v", needed, err)
	case toSince < 0 || toUntil > 0:
		return fmt.Sprintf("%s, the server is %s", needed, server)
	default:
		return ""
	}
}
