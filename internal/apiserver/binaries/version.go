package binaries

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"

	"golang.org/x/mod/semver"
)

// version is a valid Kubernetes version: "1.36.3", "1.37.0-alpha.1".
type version string

// parseVersion parses Options.Version. The error is an ErrBadVersion or an ErrUnsupportedVersion.
func parseVersion(asked string) (version, error) {
	v := "v" + strings.TrimPrefix(asked, "v")
	if !semver.IsValid(v) || semver.Major(v) != "v1" || semver.Canonical(v) != v {
		return "", fmt.Errorf("parse Kubernetes version %q: %w; want a version like 1.36.3, or a minor version like 1.36 (known to work: %s)",
			asked, ErrBadVersion, strings.Join(testedVersions(), ", "))
	}
	if semver.Compare(v, "v"+oldestVersion+"-0") < 0 {
		return "", fmt.Errorf("use Kubernetes %s: %w; the first one is %s (known to work: %s)",
			asked, ErrUnsupportedVersion, oldestVersion, strings.Join(testedVersions(), ", "))
	}
	return version(v[1:]), nil
}

// minorVersion matches a version without patch.
var minorVersion = regexp.MustCompile(`^v?(1\.(?:0|[1-9][0-9]*))$`)

// newest sets the version to the newest patch of a minor version in the stores, no pre-release, or else to the one that is
// known to work, or else to the first one. The error is an ErrUnsupportedVersion.
func (j *job) newest(minor string) error {
	oldest, err := parseVersion(minor + ".0")
	if err != nil {
		return err
	}
	j.version, j.absent = oldest, true
	for _, tested := range testedVersions() {
		if v := version(tested); v.minor() == oldest.minor() {
			j.version = v
		}
	}
	for _, store := range j.stores() {
		entries, _ := os.ReadDir(store.dir) // a store that cannot be read has nothing
		for _, entry := range entries {
			v, ok := versionOfDirName(entry.Name())
			if ok && v.minor() == oldest.minor() && semver.Prerelease(v.tag()) == "" && (j.absent || semver.Compare(v.tag(), j.version.tag()) > 0) {
				j.version, j.absent = v, false
			}
		}
	}
	return nil
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
