// Package testserver starts one API server for the tests of a package:
//
//	func TestMain(m *testing.M) { os.Exit(testserver.Main(m)) }
package testserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework/envtest"
)

// shared is the API server of the test binary.
var shared struct { //nolint:gochecknoglobals // one API server for all tests of a package
	sync.Mutex
	server  *envtest.Server
	initial state
	err     error
}

// Config returns the configuration of the API server, which is started for the first test
// that asks for it. Its user is an administrator. When the test ends, the API server has what it
// had at its start, so tests that use it cannot run at the same time.
func Config(t *testing.T) *rest.Config {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		if shared.server, shared.err = start(); shared.err == nil {
			shared.initial, shared.err = storageOf(shared.server).state(t.Context())
		}
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	t.Cleanup(func() {
		if err := errors.Join(restore(context.WithoutCancel(t.Context())), shared.server.Err()); err != nil {
			t.Error(err)
		}
	})
	return rest.CopyConfig(shared.server.Config)
}

// restore undoes what a test did on the API server, and waits until the API server knows it.
func restore(ctx context.Context) error {
	changed, err := storageOf(shared.server).restore(ctx, shared.initial)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(shared.server.Config)
	if err != nil {
		return err
	}
	for _, key := range changed {
		name, isNamespace := strings.CutPrefix(key, "/registry/namespaces/")
		if _, had := shared.initial[key]; !isNamespace || had {
			continue
		}
		err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			_, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"}) // from the cache
			return apierrors.IsNotFound(err), nil
		})
		if err != nil {
			return fmt.Errorf("wait until namespace %s is gone: %w", name, err)
		}
	}
	return nil
}

func start() (*envtest.Server, error) {
	return envtest.Start(context.Background(), envtest.Options{Progress: func(line string) { fmt.Fprintln(os.Stderr, line) }})
}

// Own returns the configuration of an API server for one test, which is stopped when the test ends.
// It is for a test that leaves something on the server, or that needs what no other test has changed.
func Own(t *testing.T) *rest.Config {
	t.Helper()
	return OwnServer(t).Config
}

// OwnServer is Own for a test that needs more of the API server.
func OwnServer(t *testing.T) *envtest.Server {
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
	return server
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
	if err := errors.Join(shared.server.Err(), shared.server.Stop()); err != nil {
		fmt.Fprintln(os.Stderr, errors.Join(errors.New("stop the API server of the tests"), err))
		return max(code, 1)
	}
	return code
}
