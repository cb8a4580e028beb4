package download

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
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

// maxIndex is the limit of the index in bytes. The published index has about 100 KiB.
const maxIndex = 16 << 20

// item is one archive of the index.
type item struct {
	version      string // without the v
	platform     string // as linux/amd64
	digest, link string // SHA-512 in hex, and the URL of the archive
}

// readIndex returns the archives of the index at a URL, from the newest version to the oldest.
// It ignores other files in the index.
func readIndex(ctx context.Context, url string) ([]item, error) {
	body, err := get(ctx, url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // read only
	text, err := io.ReadAll(io.LimitReader(body, maxIndex))
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", url, err)
	}
	var index struct {
		Releases map[string]map[string]struct {
			Hash     string `json:"hash"`
			SelfLink string `json:"selfLink"`
		} `json:"releases"`
	}
	if err := yaml.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("decode %s: %w", url, err)
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
func transfer(ctx context.Context, it item, to io.Writer) error {
	body, err := get(ctx, it.link)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // read only
	digest := sha512.New()
	if _, err := io.Copy(io.MultiWriter(to, digest), body); err != nil {
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
