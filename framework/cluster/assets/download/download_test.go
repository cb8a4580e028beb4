//go:build unix

package download

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
)

// archive packs shell scripts as controller-tools packs programs.
func archive(t *testing.T, scripts map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	w := tar.NewWriter(zipped)
	for name, body := range scripts {
		text := "#!/bin/sh\n" + body + "\n"
		header := &tar.Header{Name: "controller-tools/envtest/" + name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(text))}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func whole() map[string]string {
	return map[string]string{
		"kube-apiserver": "echo Kubernetes v1.36.3", "etcd": "echo etcd Version: 3.6.8", "kubectl": "echo kubectl",
	}
}

// site serves an index and an archive.
type site struct {
	archive []byte
	digest  string       // empty is the archive's own
	serve   http.Handler // in the place of the archive, when set
}

func (s site) start(t *testing.T) downloader {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	if s.digest == "" {
		s.digest = fmt.Sprintf("%x", sha512.Sum512(s.archive))
	}
	mux.HandleFunc("/index.yaml", func(w http.ResponseWriter, _ *http.Request) {
		for _, version := range []string{"1.36.3", "1.36.0", "1.35.0"} {
			if version == "1.36.3" {
				fmt.Fprintln(w, "releases:")
			}
			fmt.Fprintf(w, "  v%s:\n    envtest-v%s-%s-%s.tar.gz: {hash: %s, selfLink: %s/archive}\n",
				version, version, runtime.GOOS, runtime.GOARCH, s.digest, server.URL)
		}
		fmt.Fprintf(w, "  v1.34.0:\n    envtest-v1.34.0-plan9-mips.tar.gz: {hash: x, selfLink: y}\n")
	})
	if s.serve == nil {
		s.serve = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(s.archive) })
	}
	mux.Handle("/archive", s.serve)
	return downloader{
		index:    server.URL + "/index.yaml",
		patience: 5 * time.Second, limits: publishedLimits(),
	}
}

func TestDownload(t *testing.T) {
	d := site{archive: archive(t, whole())}.start(t)
	var lines []string
	o := assets.Options{CacheDir: t.TempDir(), Progress: func(line string) { lines = append(lines, line) }}
	got, err := d.download(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(o.CacheDir, "k8s", "1.36.3-"+runtime.GOOS+"-"+runtime.GOARCH)
	if diff := cmp.Diff(assets.Assets{Dir: dir, Version: "1.36.3", Source: assets.SourceDownloaded}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "kubectl")); err != nil {
		t.Error(err)
	}
	if !strings.Contains(strings.Join(lines, "\n"), "downloading the control plane 1.36.3") {
		t.Errorf("progress: %q", lines)
	}
	d.index = "" // a second request for it fails
	if got, err = d.download(t.Context(), o); err != nil || got.Source != assets.SourceCache {
		t.Errorf("a second download = %v, %v; want it from the cache", got, err)
	}
	if err := os.Truncate(got.Etcd(), 2); err != nil {
		t.Fatal(err)
	}
	d = site{archive: archive(t, whole())}.start(t)
	if got, err = d.download(t.Context(), o); err != nil || got.Source != assets.SourceDownloaded {
		t.Errorf("a download over a damaged entry = %v, %v", got, err)
	}
}

func TestDownloadFailures(t *testing.T) {
	noEtcd := whole()
	delete(noEtcd, "etcd")
	cut := archive(t, whole())
	cut = cut[:len(cut)/2]
	status := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	stuck := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "begin")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	tests := map[string]struct {
		site    site
		version string
		is      error
		says    []string
	}{
		"no archive of it":      {version: "1.36.7", is: assets.ErrNoSuchVersion, says: []string{"available are 1.36.3, 1.36.0;", "assets build"}},
		"no archive near it":    {version: "1.50.0", is: assets.ErrNoSuchVersion, says: []string{"available are 1.36.3, 1.36.0, 1.35.0;"}},
		"not for this platform": {version: "1.34.0", is: assets.ErrNoSuchVersion, says: []string{runtime.GOOS + "/" + runtime.GOARCH}},
		"not supported":         {version: "1.20.0", is: assets.ErrUnsupportedVersion, says: []string{"the first one is 1.34.0"}},
		"not a version":         {version: "new", is: assets.ErrBadVersion},
		"other bytes":           {site: site{digest: strings.Repeat("0", 128)}, is: assets.ErrNoDownload, says: []string{"checksum mismatch"}},
		"refused":               {site: site{serve: status}, is: assets.ErrNoDownload, says: []string{"403", "--assets-dir", "GOPROXY"}},
		"stands still":          {site: site{serve: stuck}, is: assets.ErrNoDownload, says: []string{"received no data for 200ms", "--assets-dir"}},
		"no etcd in it":         {site: site{archive: archive(t, noEtcd)}, is: assets.ErrDamaged, says: []string{"etcd is missing"}},
		"cut archive":           {site: site{archive: cut}, says: []string{"unpack control plane 1.36.3"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.site.archive == nil {
				test.site.archive = archive(t, whole())
			}
			d := test.site.start(t)
			if name == "stands still" {
				d.patience = 200 * time.Millisecond
			}
			o := assets.Options{Version: test.version, CacheDir: t.TempDir()}
			got, err := d.download(t.Context(), o)
			if err == nil || (test.is != nil && !errors.Is(err, test.is)) {
				t.Fatalf("download = %v, %v; want %v", got, err, test.is)
			}
			for _, part := range test.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error lacks %q:\n%v", part, err)
				}
			}
			left, _ := filepath.Glob(filepath.Join(o.CacheDir, "k8s", "[^.]*"))
			making, _ := filepath.Glob(filepath.Join(o.CacheDir, "k8s", ".making*"))
			if len(left)+len(making) > 0 {
				t.Errorf("it left %q %q", left, making)
			}
		})
	}
}

func TestSilentNetwork(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	d := downloader{index: silent.URL, patience: 50 * time.Millisecond, limits: publishedLimits()}
	_, err := d.download(t.Context(), assets.Options{CacheDir: t.TempDir()})
	if !errors.Is(err, assets.ErrNoDownload) || !strings.Contains(err.Error(), assets.Advice("")) {
		t.Errorf("download = %v; want ErrNoDownload with the ways out", err)
	}

	d.patience = time.Hour
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	cancel(why)
	_, err = d.download(ctx, assets.Options{CacheDir: t.TempDir()})
	if !errors.Is(err, why) || errors.Is(err, assets.ErrNoDownload) {
		t.Errorf("download = %v; want only the cause", err)
	}
}

func TestPatienceIsWithinThePromise(t *testing.T) {
	if patience > 12*time.Second {
		t.Errorf("patience is %s; the package promises an answer within 15s", patience)
	}
}

// TestSetupEnvtestDir expects the directories that setup-envtest v0.24.1 has as its
// store.DefaultStoreDir; the table for other systems is in package assets.
func TestSetupEnvtestDir(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the rule for Linux")
	}
	home, data := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	for xdg, want := range map[string]string{
		"":   filepath.Join(home, ".local", "share", "kubebuilder-envtest"),
		data: filepath.Join(data, "kubebuilder-envtest"),
	} {
		t.Setenv("XDG_DATA_HOME", xdg)
		if got, err := assets.SetupEnvtestDir(); err != nil || got != want {
			t.Errorf("SetupEnvtestDir = %q, %v; want %q", got, err, want)
		}
	}
}

func TestIndexHoldsMore(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `releases:
  v1.9.0: {envtest-v1.9.0-linux-amd64.tar.gz: {hash: a, selfLink: b}}
  v1.30.0:
    envtest-v1.30.0-linux-amd64.tar.gz: {hash: c, selfLink: d}
    envtest-v1.30.0-linux-amd64.tar.gz.sha512: {hash: e, selfLink: f}
    kubebuilder-tools-1.30.0-linux-amd64.tar.gz: {hash: g, selfLink: h}
  v1.31.0-beta.0: {envtest-v1.31.0-beta.0-linux-amd64.tar.gz: {hash: i, selfLink: j}}
`)
	}))
	defer server.Close()
	got, err := readIndex(t.Context(), server.URL, publishedLimits().index)
	want := []item{{"1.30.0", "linux/amd64", "c", "d"}, {"1.9.0", "linux/amd64", "a", "b"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("readIndex = %v, %v; want %v", got, err, want)
	}
}
