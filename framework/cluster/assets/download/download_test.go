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
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/tools/setup-envtest/remote"
	"sigs.k8s.io/controller-runtime/tools/setup-envtest/store"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
)

// archive returns an archive of shell scripts in the format of controller-tools.
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
	digest  string       // empty means the right one
	serve   http.Handler // serves the archive; nil serves the bytes above
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
		remote:   &remote.HTTPClient{Log: logr.Discard(), IndexURL: server.URL + "/index.yaml"},
		patience: 5 * time.Second,
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
	d.remote = nil // a request would panic
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
		"no archive near it":    {version: "1.20.0", is: assets.ErrNoSuchVersion, says: []string{"available are 1.36.3, 1.36.0, 1.35.0;"}},
		"not for this platform": {version: "1.34.0", is: assets.ErrNoSuchVersion, says: []string{runtime.GOOS + "/" + runtime.GOARCH}},
		"not a version":         {version: "new", is: assets.ErrBadVersion},
		"other bytes":           {site: site{digest: strings.Repeat("0", 128)}, is: assets.ErrNoDownload, says: []string{"checksum mismatch"}},
		"refused":               {site: site{serve: status}, is: assets.ErrNoDownload, says: []string{"403", "--assets-dir", "GOPROXY"}},
		"stands still":          {site: site{serve: stuck}, is: assets.ErrNoDownload, says: []string{"the network sent nothing for 200ms", "--assets-dir"}},
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
	d := downloader{remote: &remote.HTTPClient{Log: logr.Discard(), IndexURL: silent.URL}, patience: 50 * time.Millisecond}
	_, err := d.download(t.Context(), assets.Options{CacheDir: t.TempDir()})
	if !errors.Is(err, assets.ErrNoDownload) || !strings.Contains(err.Error(), assets.Advice("")) {
		t.Errorf("download = %v; want ErrNoDownload with the advice", err)
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

func TestStoreIsWhereSetupEnvtestPutsIt(t *testing.T) {
	for _, data := range []string{"", t.TempDir()} {
		t.Setenv("XDG_DATA_HOME", data)
		want, err := store.DefaultStoreDir()
		if err != nil {
			t.Skip("setup-envtest has no store on this system: ", err)
		}
		if got, err := assets.SetupEnvtestDir(); err != nil || got != want {
			t.Errorf("SetupEnvtestDir = %q, %v; setup-envtest uses %q", got, err, want)
		}
	}
}
