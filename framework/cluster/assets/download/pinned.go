package download

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
)

// digests are the SHA-512 of known archives. A line has the version, the platform and the
// digest. They are those of the Go module sigs.k8s.io/controller-tools, which Go's checksum
// database protects: TestPinned writes them with -update.
//
//go:embed digests.txt
var digests string

// readPinned returns the digests by "VERSION PLATFORM".
func readPinned() map[string]string {
	pinned := map[string]string{}
	for line := range strings.Lines(digests) {
		if cells := strings.Fields(line); len(cells) == 3 {
			pinned[cells[0]+" "+cells[1]] = cells[2]
		}
	}
	return pinned
}

// checkPinned returns an error if the index has another digest than the pinned one. A client that
// can write the index can then not replace a known archive. For an archive that is not
// known the index is trusted, which progress reports.
func (d downloader) checkPinned(it item, progress func(string, ...any)) error {
	want, known := d.pinned[it.version+" "+it.platform]
	switch {
	case !known:
		progress("the digest of the control plane %s for %s is not pinned in this version of admissiontest: using that of the index", it.version, it.platform)
		return nil
	case want != it.digest:
		return fmt.Errorf("download control plane %s for %s: %w: the index has SHA-512 %s, want %s, which is pinned: the index or the archive was replaced; nothing was downloaded\n%s",
			it.version, it.platform, assets.ErrNoDownload, it.digest, want, assets.Advice(it.version))
	}
	return nil
}
