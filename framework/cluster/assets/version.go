package assets

import (
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/mod/semver"
)

// version is a valid Kubernetes version: "1.36.3", "1.37.0-alpha.1".
type version string

// parseVersion parses Options.Version. Empty means DefaultVersion. The error is an
// ErrBadVersion or an ErrUnsupportedVersion.
func parseVersion(asked string) (version, error) {
	if asked == "" {
		return DefaultVersion, nil
	}
	v := "v" + strings.TrimPrefix(asked, "v")
	if !semver.IsValid(v) || semver.Major(v) != "v1" || semver.Canonical(v) != v {
		return "", fmt.Errorf("parse Kubernetes version %q: %w; want all three numbers, like 1.36.3 (known to work: %s)",
			asked, ErrBadVersion, strings.Join(testedVersions(), ", "))
	}
	if semver.Compare(v, "v"+oldestVersion+"-0") < 0 {
		return "", fmt.Errorf("use Kubernetes %s: %w; the first one is %s (known to work: %s)",
			asked, ErrUnsupportedVersion, oldestVersion, strings.Join(testedVersions(), ", "))
	}
	return version(v[1:]), nil
}

// tag returns the version of the Go module: "v1.36.3".
func (v version) tag() string { return "v" + string(v) }

// staging returns the version of Kubernetes' libraries: "v0.36.3".
func (v version) staging() string { return "v0." + strings.TrimPrefix(string(v), "1.") }

// minor returns the minor version: "36" for "1.36.3".
func (v version) minor() string {
	return strings.TrimPrefix(semver.MajorMinor(v.tag()), "v1.")
}

// platform returns the last part of the name of a directory in setup-envtest's layout.
func platform() string { return "-" + runtime.GOOS + "-" + runtime.GOARCH }

// dirName returns the name of the version's directory in setup-envtest's layout.
func (v version) dirName() string { return string(v) + platform() }

// versionOfDirName is the inverse of dirName. It returns false for any other name.
func versionOfDirName(name string) (version, bool) {
	text, ok := strings.CutSuffix(name, platform())
	if !ok || text == "" {
		return "", false
	}
	v, err := parseVersion(text)
	return v, err == nil && string(v) == text
}

// matches reports whether a server that prints version got is of version v. A vendor's
// suffix ("1.36.3+k3s1", "1.36.3-eks-1") is ignored.
func (v version) matches(got string) bool {
	rest, same := strings.CutPrefix(got, string(v))
	return same && (rest == "" || rest[0] == '+' || rest[0] == '-')
}
