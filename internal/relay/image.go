package relay

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// ImageOptions configure an image. The zero value is the program of the relay pod, for Linux with
// this machine's architecture.
type ImageOptions struct {
	// Program is the package of the program, as an argument of go build in Dir: ".", or an
	// import path. Empty means the program of the relay pod; ImageOfCommand is admissiontest itself.
	Program string
	// Arch is the architecture, as in GOARCH. Empty means this machine's.
	Arch string
	// GoCommand is the path of `go`. Empty means the one in PATH.
	GoCommand string
	// Dir is a folder in the Go module that has Program or requires this module; see
	// BuildImage. Empty means the working directory.
	Dir string
	// Progress receives one line for each step. Nil discards the lines.
	Progress func(string)
}

// imageUser is the user and group of the image. It is not root.
const imageUser = "65532:65532"

// entrypointOfRelay is the path of the binary in the image of the relay pod. For another program, it
// is the last element of the package's path.
const entrypointOfRelay = "/relay"

// epoch returns the creation time of all files in the image, so that it is reproducible.
func epoch() time.Time { return time.Unix(0, 0).UTC() }

// BuildImage makes the image. A program of this module is compiled from this module: in
// the version that the module of ImageOptions.Dir requires; or, if that module does not require it,
// in the version of this process. The error is an ErrNoToolchain if there is no `go`.
func BuildImage(ctx context.Context, options ImageOptions) (v1.Image, error) {
	options = options.complete()
	binary, entrypoint, err := compile(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("build image: %w", err)
	}
	layer, err := layerOf(binary, entrypoint)
	if err != nil {
		return nil, fmt.Errorf("build image: %w", err)
	}
	built, err := mutate.Append(empty.Image, mutate.Addendum{Layer: layer, History: v1.History{
		Created: v1.Time{Time: epoch()}, CreatedBy: "admissiontest image",
	}})
	if err == nil {
		built, err = mutate.ConfigFile(built, configOf(built, entrypoint, options))
	}
	if err != nil {
		return nil, fmt.Errorf("build image: %w", err)
	}
	return built, nil
}

// layerOf returns a layer with the binary.
func layerOf(binary []byte, entrypoint string) (v1.Layer, error) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	header := &tar.Header{Typeflag: tar.TypeReg, Name: entrypoint[1:], Mode: 0o555, Size: int64(len(binary)), ModTime: epoch(), Format: tar.FormatPAX}
	if err := writer.WriteHeader(header); err != nil {
		return nil, fmt.Errorf("write layer: %w", err)
	}
	if _, err := writer.Write(binary); err != nil {
		return nil, fmt.Errorf("write layer: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("write layer: %w", err)
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
}

// configOf returns the configuration of an image that has its layers.
func configOf(built v1.Image, entrypoint string, options ImageOptions) *v1.ConfigFile {
	config := &v1.ConfigFile{}
	if found, err := built.ConfigFile(); err == nil {
		config = found.DeepCopy()
	}
	config.OS, config.Architecture = "linux", options.Arch
	config.Created = v1.Time{Time: epoch()}
	config.Config = v1.Config{
		User: imageUser, Entrypoint: []string{entrypoint}, WorkingDir: "/",
	}
	title, description := "admissiontest hooks", "Forwards the webhook calls of an API server to a run of admissiontest"
	if options.Program == ImageOfCommand {
		title, description = "admissiontest", "Tests the admission of an API server"
	}
	if options.own() {
		config.Config.Labels = map[string]string{
			"org.opencontainers.image.title": title, "org.opencontainers.image.description": description,
			"org.opencontainers.image.source": "https://" + module,
		}
	}
	return config
}

// ImageTag returns a reference for an image that is loaded into nodes and not pushed. It has no
// registry, and its tag is a prefix of the digest.
func ImageTag(built v1.Image) (string, error) {
	digest, err := built.Digest()
	if err != nil {
		return "", fmt.Errorf("tag image: %w", err)
	}
	config, err := built.ConfigFile()
	if err != nil {
		return "", fmt.Errorf("tag image: %w", err)
	}
	title := "admissiontest-hooks"
	if entrypoint := config.Config.Entrypoint; len(entrypoint) > 0 && entrypoint[0] != entrypointOfRelay {
		title = strings.ToLower(path.Base(entrypoint[0]))
	}
	return "localhost/" + title + ":" + digest.Hex[:12], nil
}

// WriteImage writes an image in the format of `docker save`, for example for `kind load
// image-archive` or `ctr images import`. The tag is the reference of the image. The file is
// written atomically.
func WriteImage(built v1.Image, tag, path string) error {
	reference, err := name.NewTag(tag, name.WeakValidation)
	if err != nil {
		return fmt.Errorf("write tarball: %w: want NAME:TAG", err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".admissiontest-*.tar")
	if err != nil {
		return fmt.Errorf("write tarball: %w", err)
	}
	err = tarball.Write(reference, built, file)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
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
