package providers_test

import (
	"archive/tar"
	"debug/elf"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/admissiontest/admissiontest/internal/providers"
)

// most is the size that no image may exceed.
const most = 25 << 20

func build(t testing.TB, options providers.ImageOptions) v1.Image {
	t.Helper()
	built, err := providers.BuildImage(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

func TestBuild(t *testing.T) {
	built := build(t, providers.ImageOptions{})
	config, err := built.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.OS != "linux" {
		t.Errorf("got user %q and system %q", config.Config.User, config.OS)
	}
	if diff := cmp.Diff([]string{"/relay"}, config.Config.Entrypoint); diff != "" {
		t.Errorf("entrypoint (-want +got):\n%s", diff)
	}
	path := filepath.Join(t.TempDir(), "relay")
	files := contents(t, built, path)
	if diff := cmp.Diff([]string{"relay"}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	binary, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	if needed, err := binary.ImportedLibraries(); len(needed) > 0 || err != nil || binary.Section(".interp") != nil {
		t.Errorf("the binary is not static: it needs %v, error %v", needed, err)
	}
	again, err := providers.BuildImage(t.Context(), providers.ImageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	one, _ := built.Digest()
	if other, _ := again.Digest(); one != other {
		t.Errorf("built twice, got %s and %s", one, other)
	}
}

// contents lists the files of an image and writes the last one to path.
func contents(t *testing.T, built v1.Image, path string) []string {
	t.Helper()
	var names []string
	stream := mutate.Extract(built)
	defer stream.Close()
	for archive := tar.NewReader(stream); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
		if header.Mode&0o222 != 0 || header.Size > most {
			t.Errorf("%s has mode %o and %d bytes", header.Name, header.Mode, header.Size)
		}
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(file, archive); err != nil {
			t.Fatal(err)
		}
		file.Close()
	}
}

func TestTarballAndTag(t *testing.T) {
	built := build(t, providers.ImageOptions{})
	tag, err := providers.ImageTag(built)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "hooks.tar")
	if err := providers.WriteImage(built, tag, path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > most {
		t.Errorf("got %v and %v, want at most %d bytes", info.Size(), err, most)
	}
	t.Logf("%s: %d bytes", tag, info.Size())
	want, err := name.NewTag(tag)
	if err != nil {
		t.Fatal(err)
	}
	read, err := tarball.ImageFromPath(path, &want)
	if err != nil {
		t.Fatal(err)
	}
	one, _ := built.ConfigName()
	if other, _ := read.ConfigName(); one != other {
		t.Errorf("read back %s, want %s", other, one)
	}
	if providers.WriteImage(built, "not a tag", path) == nil || providers.WriteImage(built, tag, filepath.Join(dir, "none", "x.tar")) == nil {
		t.Error("wrote to a bad tag or folder")
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left %v in the folder, want the tarball alone", left)
	}
}

func TestNoToolchain(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := providers.BuildImage(t.Context(), providers.ImageOptions{})
	if !errors.Is(err, providers.ErrNoToolchain) || !strings.Contains(err.Error(), "--transport service=REFERENCE") {
		t.Errorf("got %v, want %v", err, providers.ErrNoToolchain)
	}
}

func TestOtherModule(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.invalid/other\n\ngo 1.26.0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOPROXY", "off")
	t.Chdir(dir)
	_, err := providers.BuildImage(t.Context(), providers.ImageOptions{})
	if err == nil || !strings.Contains(err.Error(), "--transport service=REFERENCE") {
		t.Errorf("got %v, want an error with what to do", err)
	}
}
