//go:build unix

package binaries

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBuildFailures(t *testing.T) {
	const noNetwork = `echo '{"Error": "Get: dial tcp: no such host"}'; exit 1`
	tests := map[string]struct {
		fake fakeGo
		is   error
		says []string
	}{
		"proxy not reached": {
			fake: fakeGo{download: noNetwork, versions: "exit 1"}, is: ErrNoModules,
			says: []string{"no such host", "three ways to get them", "--assets-dir", "--assets-index", "GOPROXY"},
		},
		"no such version": {
			fake: fakeGo{download: `echo '{"Error": "404 Not Found"}'; exit 1`, versions: "echo v1.37.1"}, is: ErrNoSuchVersion,
			says: []string{"1.37.2, 1.36.3, 1.35.4, 1.34.4", "404 Not Found"},
		},
		"version there, module refused": {
			fake: fakeGo{download: `echo '{"Error": "checksum mismatch"}'; exit 1`, versions: "echo v3.6.8 v1.37.2"}, is: ErrNoModules,
			says: []string{"checksum mismatch"},
		},
		"etcd not there": {
			fake: fakeGo{
				download: `case "$*" in *etcd*) echo '{"Error": "404 Not Found"}'; exit 1 ;; esac; echo "{\"GoMod\": \"$here/their.mod\"}"`,
				versions: "echo v3.5.0",
			},
			is: ErrNoModules, says: []string{"etcd", "404 Not Found"},
		},
		"answer not JSON": {fake: fakeGo{download: "echo hello"}, is: ErrNoModules, says: []string{"output of go mod download"}},
		"a dependency not fetched": {
			fake: fakeGo{list: "echo 'go: github.com/x/y: i/o timeout' >&2; exit 1"}, is: ErrNoModules,
			says: []string{"i/o timeout", "three ways to get them"},
		},
		"go too old": {
			fake: fakeGo{list: "echo 'go: requires go >= 1.26.0 (running go 1.22.1; GOTOOLCHAIN=local)' >&2; exit 1"}, is: ErrNoToolchain,
			says: []string{"requires go >= 1.26.0", "three ways to get them"},
		},
		"does not compile": {
			fake: fakeGo{build: "echo 'x.go:1:1: syntax error' >&2; exit 1"}, is: ErrBuild,
			says: []string{"x.go:1:1: syntax error", "three ways to get them"},
		},
		"compiles to something else": {
			fake: fakeGo{build: `printf '#!/bin/sh\necho etcd Version: 3\necho Kubernetes v1.2.3\n' >"$out"; chmod +x "$out"`},
			is:   ErrDamaged, says: []string{"kube-apiserver --version printed 1.2.3"},
		},
		"compiles to nothing": {fake: fakeGo{build: "true"}, is: ErrDamaged, says: []string{"is missing"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := Options{CacheDir: t.TempDir(), env: quiet(t), goCommand: test.fake.write(t)}
			got, err := Ensure(t.Context(), o)
			if !errors.Is(err, test.is) || !reflect.ValueOf(got).IsZero() {
				t.Fatalf("Ensure = %v, %v; want %v", got, err, test.is)
			}
			for _, other := range []error{ErrNoModules, ErrNoSuchVersion, ErrNoToolchain, ErrBuild} {
				if !errors.Is(other, test.is) && errors.Is(err, other) {
					t.Errorf("it is %v as well", other)
				}
			}
			for _, part := range test.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error lacks %q:\n%v", part, err)
				}
			}
			wantOnly(t, o.CacheDir)
		})
	}
}

func TestWithoutToolchain(t *testing.T) {
	o := Options{CacheDir: t.TempDir(), env: quiet(t), goCommand: filepath.Join(t.TempDir(), "go")}
	_, err := Ensure(t.Context(), o)
	if !errors.Is(err, ErrNoToolchain) || !strings.Contains(err.Error(), Advice(DefaultVersion)) {
		t.Errorf("Ensure = %v; want ErrNoToolchain with the advice", err)
	}
	wantOnly(t, o.CacheDir)
}

func TestCacheThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Build(t.Context(), Options{CacheDir: file, env: quiet(t), goCommand: fakeGo{}.write(t)})
	if err == nil || !strings.Contains(err.Error(), "choose another directory") {
		t.Errorf("Build = %v; want an error with what to do", err)
	}
}

func TestBuildWritesTheModuleAndEnvironment(t *testing.T) {
	fake := fakeGo{}.write(t)
	o := Options{Version: "v1.35.4", CacheDir: t.TempDir(), goCommand: fake,
		env: quiet(t, "GOFLAGS=-race -tags=x -p=1 -mod=vendor", "GOWORK=/some/go.work", "CGO_ENABLED=1")}
	if got, err := Build(t.Context(), o); err != nil || got.Version != "1.35.4" || got.Source != SourceBuilt {
		t.Fatalf("Build = %v, %v", got, err)
	}
	want := `module admissiontest.dev/temporary

go 1.26.0

godebug default=go1.26

require (
	k8s.io/kubernetes v1.35.4
	github.com/x/y v1.2.3 // indirect
	k8s.io/api v0.35.4 // indirect
)

replace k8s.io/api => k8s.io/api v0.35.4

exclude github.com/x/y v1.3.0
`
	if diff := cmp.Diff(want, read(t, filepath.Join(filepath.Dir(fake), "kube-apiserver.mod"))); diff != "" {
		t.Errorf("go.mod, -want +got:\n%s", diff)
	}
	calls := read(t, filepath.Join(filepath.Dir(fake), "calls"))
	for _, part := range []string{
		"build -trimpath -ldflags -s -w -o ", " go.etcd.io/etcd/server/v3\n",
		"-X k8s.io/component-base/version.gitVersion=v1.35.4 -X k8s.io/component-base/version.gitMajor=1 " +
			"-X k8s.io/component-base/version.gitMinor=35 ", "/kube-apiserver .\n",
	} {
		if !strings.Contains(calls, part) {
			t.Errorf("the calls of go lack %q:\n%s", part, calls)
		}
	}
	env := "\n" + read(t, filepath.Join(filepath.Dir(fake), "env"))
	for _, part := range []string{"\nGOFLAGS=-mod=mod -buildvcs=false -p=1\n", "\nGOWORK=off\n", "\nCGO_ENABLED=0\n"} {
		if !strings.Contains(env, part) {
			t.Errorf("the environment of go lacks %q:\n%s", part, env)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestCancelEndsEveryProcessAndLeavesNothing(t *testing.T) {
	for name, fake := range map[string]func(*hanging) fakeGo{
		"fetching":  func(h *hanging) fakeGo { return fakeGo{download: h.step()} },
		"resolving": func(h *hanging) fakeGo { return fakeGo{list: h.step()} },
		"compiling": func(h *hanging) fakeGo { return fakeGo{build: h.step()} },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHanging(t)
			o := Options{CacheDir: t.TempDir(), env: quiet(t), goCommand: fake(h).write(t)}
			ctx, cancel := context.WithCancelCause(t.Context())
			ended := make(chan error, 1)
			go func() { _, err := Ensure(ctx, o); ended <- err }()
			h.started(t)
			why := errors.New("interrupted")
			cancel(why)
			within(t, "Ensure to return", func() error {
				if err := <-ended; !errors.Is(err, why) || strings.Contains(err.Error(), "three ways") {
					t.Errorf("Ensure = %v; want only the cause", err)
				}
				return nil
			})
			h.gone(t)
			wantOnly(t, o.CacheDir)
		})
	}
}

func TestSecondBuilderWaitsAndTakesTheResult(t *testing.T) {
	h, first, second := newHanging(t), newProgress(), newProgress()
	release := filepath.Join(t.TempDir(), "release")
	fake := fakeGo{download: "exec 9>" + h.fifo + "; echo started >&9; until [ -e " + release + " ]; do sleep 0.05; done; " +
		`echo "{\"GoMod\": \"$here/their.mod\"}"`}
	o := Options{CacheDir: t.TempDir(), Progress: first.add, env: quiet(t), goCommand: fake.write(t), heartbeat: 20 * time.Millisecond}
	type outcome struct {
		Assets
		error
	}
	results := make(chan outcome, 2)
	ensure := func(ctx context.Context, p *progress) {
		o := o
		o.Progress = p.add
		a, err := Ensure(ctx, o)
		results <- outcome{a, err}
	}
	go ensure(t.Context(), first)
	h.started(t)
	defer h.file.Close() // a second download would wait for a reader

	impatient, cancel := context.WithCancel(t.Context())
	third := newProgress()
	go ensure(impatient, third)
	third.await(t, "waiting for another process")
	cancel()
	if got := <-results; !errors.Is(got.error, context.Canceled) {
		t.Errorf("the caller that stopped waiting got %v; want context.Canceled", got)
	}

	go ensure(t.Context(), second)
	second.await(t, "waiting for another process that makes the control plane 1.37.2")
	second.await(t, "still waiting")
	if err := os.WriteFile(release, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	sources := map[string]int{}
	for range 2 {
		got := <-results
		if got.error != nil {
			t.Error(got.error)
		}
		sources[got.Source]++
	}
	if diff := cmp.Diff(map[string]int{SourceBuilt: 1, SourceCache: 1}, sources); diff != "" {
		t.Errorf("sources, -want +got:\n%s", diff)
	}
	if n := builds(t, o.goCommand); n != 2 {
		t.Errorf("%d programs were built, want 2", n)
	}
	wantOnly(t, o.CacheDir, version(DefaultVersion).dirName())
}

// TestKilledHelper is not a test: it is the process that TestKilledBuilder kills.
func TestKilledHelper(t *testing.T) {
	cache := os.Getenv("ASSETS_TEST_CACHE")
	if cache == "" {
		t.Skip("only TestKilledBuilder runs this, as a process that it kills")
	}
	_, err := Build(t.Context(), Options{CacheDir: cache, env: quiet(t), goCommand: os.Getenv("ASSETS_TEST_GO")})
	t.Fatalf("Build = %v; it should have been killed", err)
}

func TestKilledBuilderLeavesNothingHalfMade(t *testing.T) {
	h, cache := newHanging(t), t.TempDir()
	helper := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledHelper$")
	helper.Env = append(os.Environ(), "ASSETS_TEST_CACHE="+cache,
		"ASSETS_TEST_GO="+fakeGo{build: `echo half >"$out"; ` + h.childless()}.write(t))
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	h.started(t)
	if err := helper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := helper.Wait(); err == nil {
		t.Error("the helper was not killed")
	}
	h.file.Close()
	if left, err := filepath.Glob(filepath.Join(cache, "k8s", ".making-*")); err != nil || len(left) != 1 {
		t.Fatalf("the killed builder left %q, %v; want one directory, or this test proves nothing", left, err)
	}
	o := Options{CacheDir: cache, env: quiet(t), goCommand: fakeGo{}.write(t)}
	if _, err := Find(t.Context(), o); !errors.Is(err, ErrNotFound) {
		t.Errorf("Find after the kill = %v; want ErrNotFound", err)
	}
	if got, err := Ensure(t.Context(), o); err != nil || got.Source != SourceBuilt {
		t.Errorf("Ensure after the kill = %v, %v", got, err)
	}
	wantOnly(t, cache, version(DefaultVersion).dirName())
}
