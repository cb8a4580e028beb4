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

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/tools/setup-envtest/remote"
	"sigs.k8s.io/controller-runtime/tools/setup-envtest/store"
	"sigs.k8s.io/controller-runtime/tools/setup-envtest/versions"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
)

// patience is the limit for the network to send anything.
const patience = 10 * time.Second

// errSilent ends a transfer that stalls.
var errSilent = errors.New("the network sent nothing")

// Download downloads a version into the cache of package assets, unless the cache has it,
// and returns it.
//
// Options.Dir, Options.NoBuild and KUBEBUILDER_ASSETS are ignored. The error is an
// assets.ErrBadVersion; an assets.ErrNoSuchVersion if there is no archive of the version for
// this platform; or an assets.ErrNoDownload if the transfer fails.
func Download(ctx context.Context, o assets.Options) (assets.Assets, error) {
	d := downloader{remote: &remote.HTTPClient{Log: logr.Discard()}, patience: patience}
	return d.download(ctx, o)
}

// downloader downloads archives from remote.
type downloader struct {
	remote   remote.Client
	patience time.Duration
}

func (d downloader) download(ctx context.Context, o assets.Options) (assets.Assets, error) {
	if o.Version == "" {
		o.Version = assets.DefaultVersion
	}
	ctx = logr.NewContext(ctx, logr.Discard())
	return assets.Install(ctx, o, assets.SourceDownloaded, func(ctx context.Context, dirs assets.MakerDirs, progress func(string, ...any)) error {
		item, err := d.choose(ctx, strings.TrimPrefix(o.Version, "v"))
		if err != nil {
			return err
		}
		progress("downloading the control plane %s for %s", item.version, item.platform.Platform)
		archive := filepath.Join(dirs.Scratch, "archive.tar.gz")
		if err := d.fetch(ctx, item, archive, progress); err != nil {
			return err
		}
		return unpack(ctx, item, archive, dirs)
	})
}

// choice is one archive: a version for a platform, with its digest.
type choice struct {
	version  versions.Concrete
	platform versions.PlatformItem
}

// choose finds the version in the published index.
func (d downloader) choose(ctx context.Context, asked string) (choice, error) {
	limited, cancel := context.WithTimeoutCause(ctx, d.patience, errSilent)
	defer cancel()
	sets, err := d.remote.ListVersions(limited)
	if err != nil {
		return choice{}, d.unreachable(limited, asked, fmt.Errorf("read the index of archives: %w", err))
	}
	here := versions.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}
	var have []string
	for _, set := range sets {
		for _, item := range set.Platforms {
			if item.Platform != here {
				continue
			}
			if set.Version.String() == asked {
				return choice{set.Version, item}, nil
			}
			have = append(have, set.Version.String())
		}
	}
	return choice{}, fmt.Errorf("download control plane %s: %w as an archive for %s; available are %s; %s",
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

// fetch downloads the archive. The client of setup-envtest compares its digest.
func (d downloader) fetch(ctx context.Context, item choice, path string, progress func(string, ...any)) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("download control plane %s: %w", item.version, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	moving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	watched := &watch{to: f, limit: d.patience, progress: progress}
	watched.timer = time.AfterFunc(d.patience, func() { stop(errSilent) })
	defer watched.timer.Stop()
	if err := d.remote.GetVersion(moving, item.version, item.platform, watched); err != nil {
		return d.unreachable(moving, item.version.String(), err)
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

// unpack unpacks the programs from the archive, through a temporary store of setup-envtest in
// the scratch directory.
func unpack(ctx context.Context, item choice, archive string, dirs assets.MakerDirs) error {
	f, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("unpack control plane %s: %w", item.version, err)
	}
	defer func() { _ = f.Close() }() // read only
	unpacked := store.NewAt(filepath.Join(dirs.Scratch, "store"))
	entry := store.Item{Version: item.version, Platform: item.platform.Platform}
	if err := unpacked.Add(ctx, entry, f); err != nil {
		return fmt.Errorf("unpack control plane %s: %w", item.version, err)
	}
	dir, err := unpacked.Path(entry)
	if err != nil {
		return fmt.Errorf("unpack control plane %s: %w", item.version, err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // the store makes the directory read-only
		return fmt.Errorf("unpack control plane %s: %w", item.version, err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("unpack control plane %s: %w", item.version, err)
	}
	for _, file := range files {
		if err := os.Rename(filepath.Join(dir, file.Name()), filepath.Join(dirs.Out, file.Name())); err != nil {
			return fmt.Errorf("unpack control plane %s: %w", item.version, err)
		}
	}
	return nil
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
