package assets

import (
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/mod/semver"
)

// version is one Kubernetes version, checked: "1.36.3", "1.37.0-alpha.1".
type version string

// parseVersion checks what a user wrote. Empty is DefaultVersion.
func parseVersion(asked string) (version, error) {
	if asked == "" {
		return DefaultVersion, nil
	}
	v := "v" + strings.TrimPrefix(asked, "v")
	if !semver.IsValid(v) || semver.Major(v) != "v1" || semver.Canonical(v) != v {
		return "", fmt.Errorf("parse Kubernetes version %q: %w; want all three numbers, like 1.36.3 (seen to work: %s)",
			asked, ErrBadVersion, strings.Join(seenVersions(), ", "))
	}
	return version(v[1:]), nil
}

// tag is the version as Go modules say it: "v1.36.3".
func (v version) tag() string { return "v" + string(v) }

// staging is the version that Kubernetes' own libraries carry: "v0.36.3".
func (v version) staging() string { return "v0." + strings.TrimPrefix(string(v), "1.") }

// minor is "36" of "1.36.3".
func (v version) minor() string {
	return strings.TrimPrefix(semver.MajorMinor(v.tag()), "v1.")
}

// platform is the end of every name in setup-envtest's layout.
func platform() string { return "-" + runtime.GOOS + "-" + runtime.GOARCH }

// dirName is the version's directory in setup-envtest's layout.
func (v version) dirName() string { return string(v) + platform() }

// versionOfDirName undoes dirName; false for any other name.
func versionOfDirName(name string) (version, bool) {
	text, ours := strings.CutSuffix(name, platform())
	if !ours || text == "" {
		return "", false
	}
	v, err := parseVersion(text)
	return v, err == nil && string(v) == text
}

// matches tells whether a server that calls itself got is of this version. A
// vendor's suffix ("1.36.3+k3s1", "1.36.3-eks-1") does not make it another.
func (v version) matches(got string) bool {
	rest, same := strings.CutPrefix(got, string(v))
	return same && (rest == "" || rest[0] == '+' || rest[0] == '-')
}
