package providers

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/admissiontest/admissiontest/internal/userfile"
)

// ErrNoToolchain means: there is no Go toolchain to compile the program of an image with.
var ErrNoToolchain = errors.New("no Go toolchain: install one, or use an existing image (--transport service=REFERENCE; `admissiontest image --push REFERENCE` makes one on a machine with Go)")

// ImageOptions configure an image. The zero value is the program of the relay pod, for Linux with
// this machine's architecture.
type ImageOptions struct {
	// Self makes the image of admissiontest itself.
	Self bool
	// Arch is the architecture, as in GOARCH. Empty means this machine's.
	Arch string
	// Progress receives one line for each step. Nil discards the lines.
	Progress func(string)
}

// program returns the package of the program, its path in the image, and what it is.
func (o ImageOptions) program() (pkg, entrypoint, title, description string) {
	if o.Self {
		return module + "/cmd/admissiontest", "/admissiontest", "admissiontest", "Tests the admission of an API server"
	}
	return module + "/internal/relay/cmd/relay", entrypointOfRelay, "admissiontest-hooks", "Forwards the webhook calls of an API server to a run of admissiontest"
}

const (
	// module is the path of this module.
	module = "github.com/admissiontest/admissiontest"
	// imageUser is the user and group of the image. It is not root.
	imageUser = "65532:65532"
	// entrypointOfRelay is the path of the program in the image of the relay pod.
	entrypointOfRelay = "/relay"
)

// epoch returns the creation time of all files in the image, so that it is reproducible.
func epoch() time.Time { return time.Unix(0, 0).UTC() }

// BuildImage makes the image. The program is compiled in the version that the module of the working directory
// requires; or, if that module does not require this one, in the version of this process. The error is an
// ErrNoToolchain if there is no `go`.
func BuildImage(ctx context.Context, options ImageOptions) (v1.Image, error) {
	if options.Arch == "" {
		options.Arch = runtime.GOARCH
	}
	built, err := imageOf(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("build image: %w", err)
	}
	return built, nil
}

func imageOf(ctx context.Context, options ImageOptions) (v1.Image, error) {
	_, entrypoint, title, description := options.program()
	binary, err := compile(ctx, options)
	if err != nil {
		return nil, err
	}
	layer, err := layerOf(binary, entrypoint)
	if err != nil {
		return nil, err
	}
	built, err := mutate.Append(empty.Image, mutate.Addendum{Layer: layer, History: v1.History{
		Created: v1.Time{Time: epoch()}, CreatedBy: "admissiontest image",
	}})
	if err != nil {
		return nil, err
	}
	config, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", options.Arch, v1.Time{Time: epoch()}
	config.Config = v1.Config{User: imageUser, Entrypoint: []string{entrypoint}, WorkingDir: "/", Labels: map[string]string{
		"org.opencontainers.image.title": title, "org.opencontainers.image.description": description,
		"org.opencontainers.image.source": "https://" + module,
	}}
	return mutate.ConfigFile(built, config)
}

// compile returns the program.
func compile(ctx context.Context, options ImageOptions) ([]byte, error) {
	dir, err := userfile.MkdirTemp("admissiontest-image-*")
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	out := filepath.Join(dir, "program")
	pkg, _, title, _ := options.program()
	if options.Progress != nil {
		options.Progress("compiling the program of image " + title + " for linux/" + options.Arch)
	}
	build := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=", "-o", out, pkg}
	if err = runGo(ctx, options.Arch, "", "list", pkg); err == nil {
		err = runGo(ctx, options.Arch, "", build...)
	} else if version := ownVersion(); version != "" && ctx.Err() == nil && !errors.Is(err, ErrNoToolchain) {
		for _, args := range [][]string{{"mod", "init", "example.invalid/image"}, {"get", pkg + "@" + version}, build} {
			if err = runGo(ctx, options.Arch, dir, args...); err != nil {
				break
			}
		}
	} else {
		err = fmt.Errorf("%w\nrun in a module that requires %s, or use an existing image (--transport service=REFERENCE)", err, module)
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

// ownVersion returns the version of this module in this process, or "" if that version cannot
// be downloaded.
func ownVersion() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	found := build.Main
	for _, dependency := range build.Deps {
		if dependency.Path == module && dependency.Replace == nil {
			found = *dependency
		}
	}
	if found.Path != module || !strings.HasPrefix(found.Version, "v") || strings.Contains(found.Version, "+dirty") {
		return ""
	}
	return found.Version
}

// runGo runs `go` in a folder, which is the working directory if dir is empty.
func runGo(ctx context.Context, arch, dir string, args ...string) error {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=-mod=readonly") // go.mod must not change
	out, err := command.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("run go %s: %w", args[0], context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%w (%w)", ErrNoToolchain, err)
	case err != nil:
		return fmt.Errorf("run go %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}

// layerOf returns a layer with the binary.
func layerOf(binary []byte, entrypoint string) (v1.Layer, error) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	header := &tar.Header{Typeflag: tar.TypeReg, Name: entrypoint[1:], Mode: 0o555, Size: int64(len(binary)), ModTime: epoch(), Format: tar.FormatPAX}
	err := writer.WriteHeader(header)
	if err == nil {
		_, err = writer.Write(binary)
	}
	if err == nil {
		err = writer.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("write layer: %w", err)
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
}

// ImageTag returns a reference for an image that is loaded into nodes and not pushed. It has no
// registry, and its tag is a prefix of the digest.
func ImageTag(built v1.Image) (string, error) {
	config, err := built.ConfigFile()
	digest, failed := built.Digest()
	if err = errors.Join(err, failed); err != nil {
		return "", fmt.Errorf("tag image: %w", err)
	}
	return "localhost/" + config.Config.Labels["org.opencontainers.image.title"] + ":" + digest.Hex[:12], nil
}

// WriteImage writes an image in the format of `docker save`, for example for `kind load
// image-archive` or `ctr images import`. The tag is the reference of the image.
func WriteImage(built v1.Image, tag, path string) error {
	reference, err := name.NewTag(tag, name.WeakValidation)
	if err != nil {
		return fmt.Errorf("write tarball: %w: want NAME:TAG", err)
	}
	if err := tarball.WriteToFile(path, reference, built); err != nil {
		return fmt.Errorf("write tarball %s: %w", path, err)
	}
	return nil
}

// PushImage pushes an image to a registry, with the credentials of `docker login`, and returns the
// reference with the digest.
func PushImage(ctx context.Context, built v1.Image, ref string) (string, error) {
	reference, err := name.ParseReference(ref)
	if err != nil {
		return "", fmt.Errorf("push image: %w: want REGISTRY/NAME:TAG", err)
	}
	if err := remote.Write(reference, built, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return "", fmt.Errorf("push image to %s: %w", reference, err)
	}
	digest, err := built.Digest()
	if err != nil {
		return "", fmt.Errorf("push image to %s: %w", reference, err)
	}
	return reference.Context().Digest(digest.String()).String(), nil
}
