//go:build unix

package download

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/semver"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/internal/golden"
)

// controllerTools is the module whose index is pinned, and oldest the first version that is.
const (
	controllerTools = "sigs.k8s.io/controller-tools@v0.23.0"
	oldest          = "v1.34.0"
)

// digests.txt is well formed; with -update it is written from the module.
func TestPinned(t *testing.T) {
	if golden.Update() {
		golden.Compare(t, "digests.txt", fromModule(t))
		return
	}
	line := regexp.MustCompile(`^1\.\d+\.\d+ \w+/\w+ [0-9a-f]{128}\n$`)
	count := 0
	for text := range strings.Lines(digests) {
		count++
		if !line.MatchString(text) {
			t.Errorf("digests.txt, line %d: %q", count, text)
		}
	}
	if pinned := readPinned(); count < 20 || len(pinned) != count || pinned["1.36.0 linux/amd64"] == "" {
		t.Errorf("%d lines, %d pinned digests", count, len(pinned))
	}
}

// fromModule returns the digests of the module's index.
func fromModule(t *testing.T) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", controllerTools).Output()
	if err != nil {
		t.Fatal(err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(output, &module); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(module.Dir, "envtest-releases.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	items, err := parseIndex(data)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, it := range items {
		if semver.Compare("v"+it.version, oldest) >= 0 {
			lines = append(lines, fmt.Sprintf("%s %s %s\n", it.version, it.platform, it.digest))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// An index with another digest than the pinned one is refused before the transfer; a
// version without a pinned digest is reported.
func TestPinnedDigest(t *testing.T) {
	served := site{archive: archive(t, whole())}
	for name, test := range map[string]struct {
		pinned string
		fails  bool
		notes  bool
	}{
		"other": {pinned: strings.Repeat("0", 128), fails: true},
		"same":  {pinned: fmt.Sprintf("%x", sha512.Sum512(served.archive))},
		"none":  {notes: true},
	} {
		d := served.start(t)
		if test.pinned != "" {
			d.pinned = map[string]string{"1.36.3 " + runtime.GOOS + "/" + runtime.GOARCH: test.pinned}
		}
		var lines []string
		_, err := d.download(t.Context(), assets.Options{CacheDir: t.TempDir(), Progress: func(line string) { lines = append(lines, line) }})
		if test.fails != errors.Is(err, assets.ErrNoDownload) || test.fails && !strings.Contains(err.Error(), "want 0000") {
			t.Errorf("%s: %v; want an error: %t", name, err, test.fails)
		}
		all := strings.Join(lines, "\n")
		if test.notes != strings.Contains(all, "is not pinned") || test.fails == strings.Contains(all, "downloading") {
			t.Errorf("%s: progress\n%s", name, all)
		}
	}
}

// A response or an archive that is too large is an error that says so.
func TestLimited(t *testing.T) {
	const limit = 1 << 20
	for size, fails := range map[int]bool{0: false, limit: false, limit + 1: true, 5 * limit: true} {
		got, err := io.ReadAll(limited(bytes.NewReader(make([]byte, size)), limit))
		if fails != errors.Is(err, errTooLarge) || !fails && (err != nil || len(got) != size) {
			t.Errorf("%d bytes: got %d, %v; want an error: %t", size, len(got), err, fails)
		}
		if fails && err.Error() != "too large: got more than 1048576 bytes" {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// An index, an archive, and what an archive unpacks to are refused above their limits.
func TestTooLarge(t *testing.T) {
	served := site{archive: archive(t, whole())}
	size := int64(len(served.archive))
	for name, test := range map[string]struct {
		limits limits
		fails  bool
	}{
		"all fit":   {limits: publishedLimits()},
		"index":     {limits: limits{index: 100, archive: size, unpacked: 1 << 20}, fails: true},
		"archive":   {limits: limits{index: 1 << 20, archive: size - 1, unpacked: 1 << 20}, fails: true},
		"just fits": {limits: limits{index: 1 << 20, archive: size, unpacked: 1 << 20}},
		"unpacked":  {limits: limits{index: 1 << 20, archive: size, unpacked: 1000}, fails: true},
	} {
		d := served.start(t)
		d.limits = test.limits
		_, err := d.download(t.Context(), assets.Options{CacheDir: t.TempDir()})
		if test.fails != errors.Is(err, errTooLarge) || !test.fails && err != nil {
			t.Errorf("%s: %v; want %v: %t", name, err, errTooLarge, test.fails)
		}
	}
	// The response of a server that never ends is not read to its end.
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	if err := transfer(t.Context(), item{link: endless.URL}, io.Discard, 1<<20); !errors.Is(err, errTooLarge) {
		t.Errorf("endless archive: %v; want %v", err, errTooLarge)
	}
}
