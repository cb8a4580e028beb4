package binaries

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha512"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// site is a server with an index and the archive of one version for this platform.
type site struct {
	index   string // the zero value names the archive
	hash    string // in that index; the zero value is that of the archive
	version version
	archive []byte
	// serveIndex and serveArchive are called instead of sending the contents.
	serveIndex, serveArchive http.HandlerFunc
	requests, archives       atomic.Int64
}

// start starts the server, and returns Options that use it. Its URL has credentials.
func (s *site) start(t *testing.T) (o Options, p *progress) {
	t.Helper()
	if s.archive == nil {
		s.archive = packed(t, entry(apiserverName, "#!/bin/sh\necho Kubernetes v"+string(s.version)+"\n"), entry(etcdName, "#!/bin/sh\necho etcd Version: 3.6.8\n"))
	}
	if s.hash == "" {
		s.hash = fmt.Sprintf("%X", sha512.Sum512(s.archive))
	}
	if s.index == "" {
		s.index = s.entries(string(s.version))
	}
	server := httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	p = newProgress()
	return Options{
		CacheDir: t.TempDir(), Progress: p.add, env: quiet(t), goCommand: fakeGo{}.write(t), roots: roots, patience: patience,
		IndexURL: strings.Replace(server.URL, "https://", "https://me:secret@", 1) + "/mirror/index.yaml?token=secret",
	}, p
}

// entries returns an index that names the archive, as one of these versions.
func (s *site) entries(versions ...string) string {
	text := "releases:\n"
	for _, v := range versions {
		text += fmt.Sprintf("  v%s: {envtest-v%s%s.tar.gz: {hash: %s, selfLink: %s.tar.gz}}\n", v, v, platform(), s.hash, v)
	}
	return text
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	content, own := []byte(s.index), s.serveIndex
	if strings.HasSuffix(r.URL.Path, ".tar.gz") {
		s.archives.Add(1)
		content, own = s.archive, s.serveArchive
	}
	if own != nil {
		own(w, r)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content[:1])
	_ = http.NewResponseController(w).Flush()
	_, _ = w.Write(content[1:])
}

// file is an entry of an archive.
type file struct {
	tar.Header
	content string
}

func entry(name, content string) file {
	return file{tar.Header{Name: archiveFolder + name, Typeflag: tar.TypeReg, Size: int64(len(content)), Mode: 0o600}, content}
}

// packed returns an archive. The content of an entry can be shorter than its header says.
func packed(t *testing.T, files ...file) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	entries := tar.NewWriter(zipped)
	for _, one := range files {
		must(t, entries.WriteHeader(&one.Header))
		_, err := entries.Write([]byte(one.content))
		must(t, err)
	}
	_ = entries.Flush() // it is an error if the content is shorter
	must(t, zipped.Close())
	return out.Bytes()
}

// stuck sends something, and then nothing until the client has gone.
func stuck(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(text))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func answer(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

// A download that fails for a reason that a build does not have is one line, leaves nothing, and is followed by the build.
func TestDownloadFailures(t *testing.T) {
	good, toHTTP := entry(etcdName, "#!/bin/sh\necho etcd Version: 3.6.8\n"), http.RedirectHandler("http://127.0.0.1:1/?token=secret", http.StatusFound).ServeHTTP
	link := file{tar.Header{Name: archiveFolder + apiserverName, Typeflag: tar.TypeSymlink, Linkname: "/bin/true"}, ""}
	outside := entry("../../../../"+apiserverName, "#!/bin/sh\n")
	absolute := entry(apiserverName, "#!/bin/sh\n")
	absolute.Name = "/" + absolute.Name
	huge := entry(apiserverName, "")
	huge.Size = mostBytes + 1
	impatient := func(o *Options) { o.patience = 100 * time.Millisecond }
	const none = "it has no controller-tools/envtest/kube-apiserver or no etcd: EOF"
	tests := map[string]struct {
		site   *site
		change func(o *Options)
		says   string
	}{
		"wrong digest":    {site: &site{hash: strings.Repeat("ab", 64)}, says: "and abababababababab… in the index"},
		"no digest":       {site: &site{index: "releases: {v1.37.2: {envtest-v1.37.2" + platform() + ".tar.gz: {selfLink: a.tar.gz}}}"}, says: "and … in the index"},
		"cut archive":     {site: &site{archive: packed(t, good)[:60]}, says: "EOF"},
		"not gzip":        {site: &site{archive: []byte("this is no archive")}, says: "gzip: invalid header"},
		"link":            {site: &site{archive: packed(t, link, good)}, says: none},
		"outside":         {site: &site{archive: packed(t, outside, good)}, says: none},
		"absolute":        {site: &site{archive: packed(t, absolute, good)}, says: none},
		"only etcd":       {site: &site{archive: packed(t, good)}, says: none},
		"another folder":  {site: &site{archive: packed(t, file{tar.Header{Name: apiserverName, Typeflag: tar.TypeReg}, ""}, good)}, says: none},
		"does not run":    {site: &site{archive: packed(t, entry(apiserverName, "\x7fELF"), good)}, says: "does not run"},
		"another version": {site: &site{archive: packed(t, entry(apiserverName, "#!/bin/sh\necho Kubernetes v1.2.3\n"), good)}, says: "printed 1.2.3"},
		"connection lost": {site: &site{serveArchive: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			answer("x")(w, nil)
		}}, says: "unexpected EOF"},
		"archive gone":         {site: &site{serveArchive: http.NotFound}, says: "the server answered 404 Not Found"},
		"archive over http":    {site: &site{serveArchive: toHTTP}, says: "it redirects to http://127.0.0.1:1/: want https"},
		"archive stalls":       {site: &site{serveArchive: stuck("x")}, change: impatient, says: "nothing arrived for 100ms"},
		"archive with http":    {site: &site{index: "releases: {v1.37.2: {envtest-v1.37.2" + platform() + ".tar.gz: {selfLink: 'http://h/a'}}}"}, says: "not one of https"},
		"index over http":      {site: &site{serveIndex: toHTTP}, says: "it redirects to http://127.0.0.1:1/: want https"},
		"endless redirects":    {site: &site{serveIndex: http.RedirectHandler("/", http.StatusFound).ServeHTTP}, says: "more than 10 redirects"},
		"index gone":           {site: &site{serveIndex: http.NotFound}, says: "the server answered 404 Not Found"},
		"no answer":            {site: &site{serveIndex: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}, change: impatient, says: "nothing arrived for 100ms"},
		"index stalls":         {site: &site{serveIndex: stuck("releases:")}, change: impatient, says: "nothing arrived for 100ms"},
		"HTML":                 {site: &site{index: "<!DOCTYPE html>\n<title>Log in: now</title>\n"}, says: "is not an index of envtest releases"},
		"no YAML":              {site: &site{index: "releases: ["}, says: "is not an index of envtest releases"},
		"other YAML":           {site: &site{index: "a: b"}, says: "is not an index of envtest releases"},
		"empty":                {site: &site{index: " "}, says: "is not an index of envtest releases"},
		"endless index":        {site: &site{index: strings.Repeat("#", mostIndex) + "\nreleases: {v1.37.2: {}}"}, says: "is not an index"},
		"no such version":      {site: &site{index: "releases: {v1.37.1: {}}"}, says: "has no Kubernetes 1.37.2 for "},
		"no such platform":     {site: &site{index: "releases: {v1.37.2: {envtest-v1.37.2-plan9-arm.tar.gz: {}}}"}, says: "has no Kubernetes 1.37.2 for "},
		"no server":            {change: func(o *Options) { o.IndexURL = "https://me:secret@127.0.0.1:1/" }, says: "connection refused"},
		"unknown authority":    {change: func(o *Options) { o.roots = x509.NewCertPool() }, says: "certificate signed by unknown authority"},
		"a program that fills": {site: &site{archive: packed(t, huge)}, says: "has 536870913 bytes; want at most"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := cmp.Or(test.site, &site{})
			s.version = DefaultVersion
			o, p := s.start(t)
			if test.change != nil {
				test.change(&o)
			}
			o.NoBuild = true
			_, err := Ensure(t.Context(), o)
			if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "three ways to get them") {
				t.Fatalf("Ensure = %v; want ErrNotFound and the advice", err)
			}
			line, _, _ := strings.Cut(err.Error(), "\nfind control plane ")
			if !strings.Contains(line, test.says) || strings.Contains(line+strings.Join(p.lines, ""), "secret") || strings.Contains(line, "\n") {
				t.Errorf("the error begins with %q; want one line with %q, and no credential", line, test.says)
			}
			wantIn(t, filepath.Join(o.CacheDir, "downloaded"))
		})
	}
}

// A minor version that is not on this machine is its newest patch in the index; what was downloaded is used again.
func TestDownload(t *testing.T) {
	tests := map[string]struct {
		version string
		listed  []string
		want    string // empty means that it is built
	}{
		"exact":                {"1.35.4", []string{"1.35.4", "1.35.9"}, "1.35.4"},
		"newest of a minor":    {"1.36", []string{"1.36.3", "1.35.7", "1.36.10", "1.36.9", "1.36.11-rc.1", "1.37.0"}, "1.36.10"},
		"one that is older":    {"v1.36", []string{"1.36.1"}, "1.36.1"},
		"not known to work":    {"1.38", []string{"1.38.1"}, "1.38.1"},
		"default":              {"", []string{"1.37.0", "1.37.1", "1.38.1"}, "1.37.1"},
		"absent exact version": {"1.36.3", []string{"1.36.2", "1.36.4"}, ""},
		"absent minor":         {"1.36", []string{"1.35.2", "1.36.0-rc.1"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &site{version: version(test.want)}
			o, p := s.start(t)
			s.index, o.Version, o.heartbeat = s.entries(test.listed...), test.version, time.Nanosecond
			got, err := Ensure(t.Context(), o)
			if test.want == "" {
				if err != nil || got.Source != SourceBuilt || got.Version != "1.36.3" || s.archives.Load() != 0 {
					t.Errorf("Ensure = %v, %v; want 1.36.3 built", got, err)
				}
				p.want(t, " for "+runtime.GOOS+"/"+runtime.GOARCH+"; building it")
				return
			}
			if err != nil || got.Version != test.want || got.Source != SourceDownloaded || got.ObservesPlugins {
				t.Fatalf("Ensure = %v, %v; want %s downloaded", got, err, test.want)
			}
			p.want(t, "downloading the control plane "+test.want+" from 127.0.0.1:")
			p.want(t, "downloading the control plane "+test.want+": 0.0 MiB so far")
			p.want(t, "downloaded the control plane "+test.want+" in ")
			wantIn(t, got.Dir, manifestName, etcdName, apiserverName)
			again, err := Ensure(t.Context(), o)
			if err != nil || again.Version != test.want || again.Source != SourceCache || again.ObservesPlugins || s.requests.Load() != 2 || builds(t, o.goCommand) != 0 {
				t.Errorf("Ensure again = %v, %v after %d requests; want it from the cache, and nothing built", again, err, s.requests.Load())
			}
		})
	}
}

// Nothing is downloaded where the options or a directory say so, nor for what only a built kube-apiserver can do. What was
// downloaded stays where a server is built beside it.
func TestNothingIsDownloaded(t *testing.T) {
	given := programsIn(t, t.TempDir(), DefaultVersion)
	tests := map[string]struct {
		change func(o *Options)
		source string
	}{
		"NoDownload":         {func(o *Options) { o.NoDownload = true }, SourceBuilt},
		"off":                {func(o *Options) { o.IndexURL = noIndex }, SourceBuilt},
		"off by variable":    {func(o *Options) { o.IndexURL = "" }, SourceBuilt},
		"Dir":                {func(o *Options) { o.Dir = given }, SourceDir},
		"KUBEBUILDER_ASSETS": {func(o *Options) { o.env = append(o.env, "KUBEBUILDER_ASSETS="+given) }, SourceEnvironment},
		"cached":             {func(o *Options) { cachedIn(t, o.CacheDir, DefaultVersion) }, SourceCache},
		"ObservePlugins":     {func(o *Options) { o.ObservePlugins = true; downloadedIn(t, o.CacheDir, DefaultVersion) }, SourceBuilt},
		"older download":     {func(o *Options) { o.ObservePlugins = true; downloadedIn(t, o.CacheDir, "1.37.9") }, SourceBuilt},
		"another admissiontest": {func(o *Options) {
			must(t, (&manifest{Version: DefaultVersion, Main: "another"}).write(cachedIn(t, o.CacheDir, DefaultVersion)))
			downloadedIn(t, o.CacheDir, DefaultVersion)
		}, SourceCache},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &site{version: DefaultVersion}
			o, _ := s.start(t)
			test.change(&o)
			before, _ := filepath.Glob(filepath.Join(o.CacheDir, "downloaded", "*", "*"))
			got, err := Ensure(t.Context(), o)
			if err != nil || got.Source != test.source || got.Version != DefaultVersion || got.ObservesPlugins != (strings.Contains(got.Dir, "/k8s/")) || s.requests.Load() != 0 {
				t.Errorf("Ensure = %v, %v after %d requests; want source %s and no request", got, err, s.requests.Load(), test.source)
			}
			if after, _ := filepath.Glob(filepath.Join(o.CacheDir, "downloaded", "*", "*")); strings.Join(after, " ") != strings.Join(before, " ") {
				t.Errorf("of the downloads %q there are %q", before, after)
			}
		})
	}
}

func TestBadIndexURL(t *testing.T) {
	for _, text := range []string{"http://me:secret@h/", "file:///secret", "secret", "https:///secret", "https://me:secret@h:x/"} {
		for name, o := range map[string]Options{"field": {IndexURL: text, env: quiet(t)}, "variable": {env: quiet(t, indexVariable+"="+text)}} {
			o.CacheDir, o.goCommand = t.TempDir(), fakeGo{}.write(t)
			if _, err := Ensure(t.Context(), o); !errors.Is(err, ErrBadIndex) || strings.Contains(err.Error(), "secret") || builds(t, o.goCommand) != 0 {
				t.Errorf("%s %s: %v; want ErrBadIndex, without a credential", name, text, err)
			}
		}
	}
}

func TestOneDownloadAtOnce(t *testing.T) {
	s := &site{version: DefaultVersion}
	o, p := s.start(t)
	s.serveArchive = func(w http.ResponseWriter, _ *http.Request) {
		p.await(t, "waiting for another process")
		_, _ = w.Write(s.archive)
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if got, err := Ensure(t.Context(), o); err != nil || got.Version != DefaultVersion || got.ObservesPlugins {
				t.Errorf("Ensure = %v, %v", got, err)
			}
		})
	}
	all.Wait()
	if n := s.archives.Load(); n != 1 {
		t.Errorf("the archive was downloaded %d times, want once", n)
	}
}

// A download that is ended leaves nothing, and starts no build.
func TestEndedDownload(t *testing.T) {
	why := errors.New("enough")
	for name, s := range map[string]*site{"index": {serveIndex: stuck("releases:")}, "archive": {serveArchive: stuck("x")}} {
		t.Run(name, func(t *testing.T) {
			s.version = DefaultVersion
			o, p := s.start(t)
			ctx, end := context.WithCancelCause(t.Context())
			waiting := "downloading the control plane 1.37.2 from"
			if s.serveIndex != nil {
				waiting = "asked"
				serve := s.serveIndex
				s.serveIndex = func(w http.ResponseWriter, r *http.Request) { p.add("asked"); serve(w, r) }
			}
			go func() { p.await(t, waiting); end(why) }()
			if got, err := Ensure(ctx, o); !errors.Is(err, why) || builds(t, o.goCommand) != 0 {
				t.Errorf("Ensure = %v, %v; want %v, and nothing built", got, err, why)
			}
			wantIn(t, filepath.Join(o.CacheDir, "downloaded"))
		})
	}
}

// A cache that cannot be written is an error with what to do: a build could not write either.
func TestDownloadIntoBadCache(t *testing.T) {
	tests := map[string]struct {
		prepare func(t *testing.T, cache string)
		says    string
	}{
		"no directory": {func(t *testing.T, cache string) {
			must(t, os.WriteFile(filepath.Join(cache, "downloaded"), nil, 0o600))
		}, "not a directory"},
		"read-only": {func(t *testing.T, cache string) { mount(t, cache, syscall.MS_RDONLY) }, "read-only file system"},
		"read-only downloads": {func(t *testing.T, cache string) {
			must(t, os.Mkdir(filepath.Join(cache, "downloaded"), 0o700))
			mount(t, filepath.Join(cache, "downloaded"), syscall.MS_RDONLY)
		}, "read-only file system"},
		"full": {func(t *testing.T, cache string) { mount(t, cache, 0) }, "no space left on device"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			noise := make([]byte, 1<<20)
			_, _ = rand.Read(noise) // it does not fail
			s := &site{version: DefaultVersion, archive: packed(t, entry(apiserverName, string(noise)), entry(etcdName, ""))}
			o, _ := s.start(t)
			test.prepare(t, o.CacheDir)
			_, err := Ensure(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "choose another directory as the cache (XDG_CACHE_HOME)") || strings.Contains(err.Error(), "\n") {
				t.Errorf("Ensure = %v; want one line that says %q, and what to do", err, test.says)
			}
			if n := builds(t, o.goCommand); n != 0 {
				t.Errorf("%d programs were built, want none", n)
			}
			if left, _ := filepath.Glob(filepath.Join(o.CacheDir, "downloaded", ".making*")); len(left) > 0 {
				t.Errorf("%q is left", left)
			}
		})
	}
}

// mount makes a directory a file system of 256 KiB.
func mount(t *testing.T, dir string, flags uintptr) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, "size=256k,mode=0700"); err != nil {
		t.Skip("mounting a file system needs root: ", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
}
