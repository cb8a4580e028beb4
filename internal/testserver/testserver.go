// Package testserver starts one API server for the tests of a package:
//
//	func TestMain(m *testing.M) { os.Exit(testserver.Main(m)) }
package testserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/framework/cluster/envtest"
)

// shared is the API server of the test binary.
var shared struct { //nolint:gochecknoglobals // one API server for all tests of a package
	sync.Mutex
	server *envtest.Server
	err    error
}

// Config returns the configuration of the API server, which is started for the first test
// that asks for it. Its user is an administrator.
func Config(t *testing.T) *rest.Config {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = start()
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return rest.CopyConfig(shared.server.Config)
}

func start() (*envtest.Server, error) {
	ctx := context.Background()
	found, err := assets.Ensure(ctx, assets.Options{Progress: func(line string) { fmt.Fprintln(os.Stderr, line) }})
	if err != nil {
		return nil, err
	}
	return envtest.Start(ctx, envtest.Options{Assets: found})
}

// Own returns the configuration of an API server for one test, which is stopped when the test ends.
// It is for a test that leaves something on the server, or that needs what no other test has changed.
func Own(t *testing.T) *rest.Config {
	t.Helper()
	server, err := start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server.Config
}

// Main runs the tests and then stops the API server, if it was started. It returns the
// exit code.
func Main(m *testing.M) int {
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		return code
	}
	if err := shared.server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, errors.Join(errors.New("stop the API server of the tests"), err))
		return max(code, 1)
	}
	return code
}
