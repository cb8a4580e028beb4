package envtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// programs returns programs of which etcd and kube-apiserver are scripts. $etcd and $apiserver in them are the
// real ones, and $folder is a folder with the FIFO event.
func programs(t *testing.T, etcd, apiServer string) binaries.Assets {
	t.Helper()
	real, folder := assets(t), t.TempDir()
	if err := unix.Mkfifo(filepath.Join(folder, "event"), 0o600); err != nil {
		t.Fatal(err)
	}
	fake := real
	fake.Dir = folder
	for name, text := range map[string]string{fake.Etcd(): etcd, fake.KubeAPIServer(): apiServer} {
		text = fmt.Sprintf("#!/bin/sh\netcd=%s apiserver=%s folder=%s\n%s\n", real.Etcd(), real.KubeAPIServer(), folder, text)
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return fake
}

// An API server that needs etcd does not get ready after the end of etcd, which is the cause.
func TestStorageEnds(t *testing.T) {
	for name, fake := range map[string]binaries.Assets{
		"before it is ready": programs(t, `echo Error: no space >&2; exit 3`, `exec sleep 1000`),
		"later": programs(t, `"$etcd" "$@" & read -r line <"$folder/event"; kill -s KILL $!; wait; echo Error: no space >&2; exit 3`,
			`echo >"$folder/event"; exec sleep 1000`),
	} {
		t.Run(name, func(t *testing.T) {
			server, err := Start(t.Context(), Options{BinaryAssetsDirectory: fake.Dir})
			if err == nil {
				t.Fatal(server.Stop())
			}
			var ended *EndedError
			if !errors.As(err, &ended) || ended.Program != "etcd" || !strings.Contains(err.Error(), "etcd ended before it was ready (exit status 3); it printed: Error: no space") {
				t.Errorf("got error %v; want the end of etcd", err)
			}
		})
	}
}

// The start ends with its context.
func TestStartEndsWithItsContext(t *testing.T) {
	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	fake := programs(t, `exec "$etcd" "$@"`, `echo >"$folder/event"; exec sleep 1000`)
	go func() {
		_, _ = os.ReadFile(filepath.Join(fake.Dir, "event"))
		cancel(why)
	}()
	began := time.Now()
	server, err := Start(ctx, Options{BinaryAssetsDirectory: fake.Dir})
	if took := time.Since(began); !errors.Is(err, why) || server != nil || took > startLimit/2 {
		t.Errorf("got %v after %s, want %v", err, took, why)
	}
}
