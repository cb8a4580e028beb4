package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
)

// patience is the limit for the network to send anything.
const patience = 10 * time.Second

// errSilent ends a transfer that stalls.
var errSilent = errors.New("received no data")

// Download downloads a version into the cache of package assets, unless the cache has it,
// and returns it.
//
// Options.Dir, Options.NoBuild and KUBEBUILDER_ASSETS are ignored. The error is an
// assets.ErrBadVersion; an assets.ErrNoSuchVersion if there is no archive of the version for
// this platform; or an assets.ErrNoDownload if the transfer fails.
func Download(ctx context.Context, o assets.Options) (assets.Assets, error) {
	d := downloader{index: publishedIndex, patience: patience, limits: publishedLimits(), pinned: readPinned()}
	return d.download(ctx, o)
}

// downloader downloads archives.
type downloader struct {
	index    string // URL of the index
	patience time.Duration
	limits   limits
	pinned   map[string]string // see readPinned
}

func (d downloader) download(ctx context.Context, o assets.Options) (assets.Assets, error) {
	version, err := assets.Version(o)
	if err != nil {
		return assets.Assets{}, err
	}
	return assets.Install(ctx, o, assets.SourceDownloaded, func(ctx context.Context, dirs assets.MakerDirs, progress func(string, ...any)) error {
		chosen, err := d.choose(ctx, version)
		if err != nil {
			return err
		}
		if err := d.checkPinned(chosen, progress); err != nil {
			return err
		}
		progress("downloading the control plane %s for %s", chosen.version, chosen.platform)
		archive := filepath.Join(dirs.Scratch, "archive.tar.gz")
		if err := d.fetch(ctx, chosen, archive, progress); err != nil {
			return err
		}
		if err := unpack(archive, dirs.Out, d.limits.unpacked); err != nil {
			return fmt.Errorf("unpack control plane %s: %w", chosen.version, err)
		}
		return nil
	})
}

// choose finds the version in the published index.
func (d downloader) choose(ctx context.Context, asked string) (item, error) {
	patient, cancel := context.WithTimeoutCause(ctx, d.patience, errSilent)
	defer cancel()
	items, err := readIndex(patient, d.index, d.limits.index)
	if err != nil {
		return item{}, d.unreachable(patient, asked, fmt.Errorf("read the index of archives: %w", err))
	}
	here := runtime.GOOS + "/" + runtime.GOARCH
	var have []string
	for _, it := range items {
		if it.platform != here {
			continue
		}
		if it.version == asked {
			return it, nil
		}
		have = append(have, it.version)
	}
	return item{}, fmt.Errorf("download control plane %s: %w as an archive for %s; available are %s; %s",
		asked, assets.ErrNoSuchVersion, here, nearest(have, asked), assets.Advice(asked))
}

// nearest returns up to five versions of the same minor, or the newest of all if there are
// none. have is sorted from the newest to the oldest.
func nearest(have []string, asked string) string {
	minor := asked[:strings.LastIndex(asked, ".")+1]
	same := slices.DeleteFunc(slices.Clone(have), func(v string) bool { return !strings.HasPrefix(v, minor) })
	if len(same) == 0 {
		same = have
	}
	if len(same) == 0 {
		return "none"
	}
	return strings.Join(same[:min(5, len(same))], ", ")
}

// fetch downloads the archive to a file.
func (d downloader) fetch(ctx context.Context, it item, path string, progress func(string, ...any)) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("download control plane %s: %w", it.version, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	moving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	watched := &watch{to: f, limit: d.patience, progress: progress}
	watched.timer = time.AfterFunc(d.patience, func() { stop(errSilent) })
	defer watched.timer.Stop()
	if err := transfer(moving, it, watched, d.limits.archive); err != nil {
		return d.unreachable(moving, it.version, err)
	}
	return nil
}

// unreachable returns the error of a transfer. Unless the caller's context ended, it includes
// assets.Advice.
func (d downloader) unreachable(ctx context.Context, version string, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errSilent):
		err = fmt.Errorf("%w for %s", cause, d.patience)
	case cause != nil:
		return fmt.Errorf("download control plane %s: %w", version, cause)
	}
	return fmt.Errorf("download control plane %s: %w: %w\n%s", version, assets.ErrNoDownload, err, assets.Advice(version))
}

// watch is a writer that resets a timer with each write. It reports progress every 10 MiB.
type watch struct {
	to       io.Writer
	timer    *time.Timer
	limit    time.Duration
	progress func(string, ...any)
	bytes    int64
}

// Write writes to w.to.
func (w *watch) Write(p []byte) (int, error) {
	const step = 10 << 20
	w.timer.Reset(w.limit)
	n, err := w.to.Write(p)
	if before := w.bytes; before/step != (before+int64(n))/step {
		w.progress("downloaded %d MiB", (before+int64(n))>>20)
	}
	w.bytes += int64(n)
	return n, err
}
