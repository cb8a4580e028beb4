package binaries

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"
)

// DefaultIndexURL is the index of the envtest releases of Kubernetes, which setup-envtest uses too.
const DefaultIndexURL = "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"

const (
	indexVariable = "ADMISSIONTEST_ASSETS_INDEX" // the environment variable with the URL of an index
	noIndex       = "off"                        // instead of a URL: nothing is downloaded
	archiveFolder = "controller-tools/envtest/"  // the folder of the programs in an archive

	indexPatience   = 5 * time.Second
	archivePatience = 30 * time.Second
	mostIndex       = 1 << 23 // bytes of an index
	mostBytes       = 1 << 29 // of an archive, and of a program in it
)

// errNoDownload means: what a server sent, or that it sent nothing, is why there is no download. A build may help.
var errNoDownload = errors.New("the control plane was not downloaded")

// release is an archive in an index.
type release struct {
	Hash     string `json:"hash"`     // SHA-512 in hexadecimal digits
	SelfLink string `json:"selfLink"` // the URL of the archive; a relative one begins at the index
}

// indexURL returns the URL of the index, or nil if nothing is to be downloaded. The error is an ErrBadIndex.
func (j *job) indexURL() (*url.URL, error) {
	text := cmp.Or(j.IndexURL, j.getenv(indexVariable), DefaultIndexURL)
	if j.NoDownload || j.ObservePlugins || text == noIndex {
		return nil, nil //nolint:nilnil // there is none
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Scheme != "https" || parsed.Host == "" {
		return nil, fmt.Errorf("use the index of --assets-index or %s: %w; want https://HOST/PATH, or %q to download nothing", indexVariable, ErrBadIndex, noIndex)
	}
	return parsed, nil
}

// download downloads the programs into the cache, unless it has them. Downloads have their own folder: a download and an
// entry that was built never replace each other. The error is an errNoDownload if a build may help.
func (j *job) download(ctx context.Context, from *url.URL) (made Assets, err error) {
	v, listed, err := j.choose(ctx, from)
	if err == nil {
		own := *j
		own.version, own.cache, own.archive, own.source = v, j.downloads(), listed.Hash, SourceDownloaded
		made, err = own.install(ctx, func(ctx context.Context, to dirs) error { return own.fetchPrograms(ctx, from, listed, to.out) })
	}
	switch {
	case ctx.Err() != nil && err != nil:
		err = fmt.Errorf("download the control plane %s: %w", j.version, context.Cause(ctx))
	case errors.Is(err, ErrDamaged): // the new programs do not run here
		err = fmt.Errorf("%w: %w", errNoDownload, err)
	}
	return made, err
}

// choose reads the index, and returns the version to download and its archive for this platform. For a minor version of which
// this machine has none, it is the newest patch, no pre-release.
func (j *job) choose(ctx context.Context, from *url.URL) (newest version, archive release, err error) {
	text, err := j.fetch(ctx, from, "the index of envtest releases", cmp.Or(j.patience, indexPatience))
	if err != nil {
		return "", release{}, err
	}
	var index struct {
		Releases map[string]map[string]release `json:"releases"`
	}
	if err := yaml.Unmarshal(text[:min(len(text), mostIndex)], &index); err != nil || len(index.Releases) == 0 {
		return "", release{}, fmt.Errorf("%w: %s is not an index of envtest releases", errNoDownload, shown(from))
	}
	for tag, archives := range index.Releases {
		v, err := parseVersion(tag)
		one, found := archives["envtest-v"+v.dirName()+".tar.gz"]
		wanted := v == j.version || j.absent && v.minor() == j.version.minor() && semver.Prerelease(v.tag()) == ""
		if err == nil && found && wanted && (newest == "" || semver.Compare(v.tag(), newest.tag()) > 0) {
			newest, archive = v, one
		}
	}
	if newest == "" {
		err = fmt.Errorf("%w: %s has no Kubernetes %s for %s/%s", errNoDownload, shown(from), cmp.Or(j.Version, string(j.version)), runtime.GOOS, runtime.GOARCH)
	}
	return newest, archive, err
}

// fetchPrograms downloads an archive, checks its digest, and only then unpacks it into a directory.
func (j *job) fetchPrograms(ctx context.Context, from *url.URL, archive release, dir string) error {
	started := time.Now()
	link, err := from.Parse(archive.SelfLink)
	if err != nil || link.Scheme != "https" {
		return fmt.Errorf("%w: %s has an archive of Kubernetes %s whose URL is not one of https", errNoDownload, shown(from), j.version)
	}
	data, err := j.fetch(ctx, link, "the control plane "+string(j.version), cmp.Or(j.patience, archivePatience))
	if err != nil {
		return err
	}
	sum := sha512.Sum512(data)
	if got := hex.EncodeToString(sum[:]); !strings.EqualFold(got, archive.Hash) {
		return fmt.Errorf("%w: %s has the SHA-512 %.16s…, and %.16s… in the index", errNoDownload, shown(link), got, archive.Hash)
	}
	unpacked, err := unpack(data)
	if err != nil {
		return fmt.Errorf("%w: unpack %s: %w", errNoDownload, shown(link), err)
	}
	for name, program := range unpacked {
		if err := os.WriteFile(filepath.Join(dir, name), program, 0o755); err != nil { //nolint:gosec // it is a program
			return cacheError("write a program", err)
		}
	}
	j.report("downloaded the control plane %s in %s", j.version, elapsed(started))
	return nil
}

// unpack returns the programs in an archive by name. Entries with other paths, and links, are ignored.
func unpack(archive []byte) (map[string][]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	entries := tar.NewReader(io.LimitReader(unzipped, 4*mostBytes))
	found := map[string][]byte{}
	for len(found) < len(programs()) {
		header, err := entries.Next()
		if err != nil {
			return nil, fmt.Errorf("it has no %s%s: %w", archiveFolder, strings.Join(programs(), " or no "), err)
		}
		name, inFolder := strings.CutPrefix(strings.TrimPrefix(header.Name, "./"), archiveFolder)
		if !inFolder || !slices.Contains(programs(), name) || header.Typeflag != tar.TypeReg {
			continue
		}
		if header.Size > mostBytes {
			return nil, fmt.Errorf("%s has %d bytes; want at most %d", name, header.Size, mostBytes)
		}
		found[name] = make([]byte, header.Size)
		if _, err := io.ReadFull(entries, found[name]); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	return found, nil
}

// fetch returns what a URL has. Patience is the limit of the time to each byte. The error is an errNoDownload.
func (j *job) fetch(ctx context.Context, from *url.URL, name string, patience time.Duration) (data []byte, err error) {
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	timer := time.AfterFunc(patience, func() { abort(fmt.Errorf("nothing arrived for %s", patience)) })
	defer timer.Stop()
	defer func() {
		if request := (*url.Error)(nil); errors.As(err, &request) {
			err = request.Err // without the URL, which can have credentials
		}
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		if err != nil {
			err = fmt.Errorf("%w: %s: %w", errNoDownload, shown(from), err)
		}
	}()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := j.client().Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // it was read, or is not wanted
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answered %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	j.report("downloading %s from %s (%.1f MiB)", name, from.Host, float64(max(0, response.ContentLength))/(1<<20))
	reported := time.Now()
	for chunk := make([]byte, 1<<16); len(data) <= mostBytes; {
		n, err := response.Body.Read(chunk)
		data = append(data, chunk[:n]...)
		if errors.Is(err, io.EOF) {
			return data, context.Cause(ctx) // a server that sees the end of the request can end its answer at once
		}
		if err != nil {
			return nil, err
		}
		timer.Reset(patience)
		if time.Since(reported) > j.heartbeat {
			j.report("downloading %s: %.1f MiB so far", name, float64(len(data))/(1<<20))
			reported = time.Now()
		}
	}
	return nil, fmt.Errorf("it has more than %d bytes", mostBytes)
}

// shown returns a URL without what can be a credential.
func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// client returns a client for one request. It follows redirects to https.
func (j *job) client() *http.Client {
	transport := &http.Transport{
		TLSClientConfig:    &tls.Config{RootCAs: j.roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:  true,
		DisableKeepAlives:  true, // no connection is left
		DisableCompression: true, // the digest is that of the archive as it was sent
		Proxy:              http.ProxyFromEnvironment,
	}
	return &http.Client{Transport: transport, CheckRedirect: func(request *http.Request, before []*http.Request) error {
		if request.URL.Scheme != "https" {
			return fmt.Errorf("it redirects to %s: want https", shown(request.URL))
		}
		if len(before) >= 10 {
			return errors.New("more than 10 redirects")
		}
		return nil
	}}
}
