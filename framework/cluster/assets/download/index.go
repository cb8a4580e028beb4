package download

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"

	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"
)

// publishedIndex is the index that controller-tools publishes and setup-envtest reads.
const publishedIndex = "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"

// limits are the sizes in bytes above which a response or an archive is refused.
type limits struct{ index, archive, unpacked int64 }

// publishedLimits returns limits far above what is published: an index of 100 KiB, and
// archives of about 100 MiB, which have some 250 MiB when unpacked.
func publishedLimits() limits { return limits{index: 16 << 20, archive: 512 << 20, unpacked: 2 << 30} }

// errTooLarge marks a response or an archive that exceeds its limit.
var errTooLarge = errors.New("too large")

// limited returns a reader that fails with errTooLarge after some bytes.
func limited(from io.Reader, limit int64) io.Reader { return &limitedReader{from, limit, limit} }

type limitedReader struct {
	from        io.Reader
	left, limit int64
}

// Read reads a part. It reads one byte more than the limit, to distinguish the end from an excess.
func (l *limitedReader) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.from.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, fmt.Errorf("%w: got more than %d bytes", errTooLarge, l.limit)
	}
	return n, err
}

// item is one archive of the index.
type item struct {
	version      string // without the v
	platform     string // as linux/amd64
	digest, link string // SHA-512 in hex, and the URL of the archive
}

// readIndex returns the archives of the index at a URL, from the newest version to the oldest.
// It ignores other files in the index.
func readIndex(ctx context.Context, url string, limit int64) ([]item, error) {
	body, err := get(ctx, url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // read only
	text, err := io.ReadAll(limited(body, limit))
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", url, err)
	}
	items, err := parseIndex(text)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", url, err)
	}
	return items, nil
}

// parseIndex is readIndex for the text of an index.
func parseIndex(text []byte) ([]item, error) {
	var index struct {
		Releases map[string]map[string]struct {
			Hash     string `json:"hash"`
			SelfLink string `json:"selfLink"`
		} `json:"releases"`
	}
	if err := yaml.Unmarshal(text, &index); err != nil {
		return nil, err
	}
	name := regexp.MustCompile(`^envtest-v(\d+\.\d+\.\d+)-(\w+)-(\w+)\.tar\.gz$`)
	var items []item
	for _, archives := range index.Releases {
		for file, archive := range archives {
			if part := name.FindStringSubmatch(file); part != nil {
				items = append(items, item{part[1], part[2] + "/" + part[3], archive.Hash, archive.SelfLink})
			}
		}
	}
	slices.SortFunc(items, func(a, b item) int { return semver.Compare("v"+b.version, "v"+a.version) })
	return items, nil
}

// transfer downloads the archive to a writer. It returns an error if its SHA-512 is not that of
// the index.
func transfer(ctx context.Context, it item, to io.Writer, limit int64) error {
	body, err := get(ctx, it.link)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // read only
	digest := sha512.New()
	if _, err := io.Copy(io.MultiWriter(to, digest), limited(body, limit)); err != nil {
		return fmt.Errorf("get %s: %w", it.link, err)
	}
	if got := hex.EncodeToString(digest.Sum(nil)); got != it.digest {
		return fmt.Errorf("get %s: checksum mismatch: SHA-512 is %s, want %s", it.link, got, it.digest)
	}
	return nil
}

// get requests a URL and returns the body of the response, which the caller closes.
func get(ctx context.Context, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("get %s: got status %s, want 200 OK", url, response.Status)
	}
	return response.Body, nil
}
