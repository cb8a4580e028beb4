package rules_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/rules"
)

// programVariable makes the test binary the program of a webhook: "sound", or the name of a fault.
const programVariable = "ADMISSIONTEST_WEBHOOK_PROGRAM"

func TestMain(m *testing.M) {
	if fault := os.Getenv(programVariable); fault != "" && len(os.Args) == 3 {
		serveProgram(fault, os.Args[1], os.Args[2])
		return
	}
	os.Exit(m.Run())
}

// serveProgram serves the correct webhooks until SIGTERM. The faults are "exits", which ends at once, "closes", which
// closes connections that are in use, and "old certificate", which reads the certificate only once.
func serveProgram(fault, port, certDir string) {
	read := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(filepath.Join(certDir, "tls.crt"), filepath.Join(certDir, "tls.key"))
		return &pair, err
	}
	first, err := read(nil)
	if err != nil {
		panic(err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: read}
	if fault == "old certificate" {
		config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return first, nil }
	}
	var draining atomic.Bool
	handler := &sound{}
	server := &http.Server{
		Addr: net.JoinHostPort("127.0.0.1", port), TLSConfig: config, ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if draining.Load() {
				w.Header().Set("Connection", "close")
			}
			handler.ServeHTTP(w, r)
		}),
	}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	go func() { _ = server.ListenAndServeTLS("", "") }()
	<-stop.Done()
	switch fault {
	case "exits":
		return
	case "closes":
		_ = server.Close()
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // a program that ends slowly
		return
	}
	draining.Store(true)
	time.Sleep(500 * time.Millisecond) //nolint:forbidigo // until clients have other connections
	_ = server.Shutdown(context.Background())
}

// The rules about a program find the faults, and nothing in the correct program.
func TestProcess(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, breaks := range map[string]string{"sound": "", "exits": "WH-PERF-4", "closes": "WH-PERF-4", "old certificate": "WH-SEC-5"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(programVariable, name)
			s := soundSubject(fault{})
			s.Process = []string{program, "{port}", "{cert-dir}"}
			prepared := check.Prepare(t.Context(), s)
			prepared.SetRenewalLimit(2 * time.Second)
			for _, each := range rules.All() {
				if !slices.Contains([]string{"WH-PERF-4", "WH-SEC-5"}, each.ID) {
					continue
				}
				want := framework.Pass
				if each.ID == breaks {
					want = framework.Fail
				}
				if got := prepared.Check(each, prepared.Webhooks[0], 30*time.Second); got.Verdict != want {
					t.Errorf("%s: %s, want %s: %s", each, got.Verdict, want, got.Reason)
				}
			}
		})
	}
}

// A program that does not start, or does not answer, is inconclusive, with what it printed.
func TestProcessDoesNotAnswer(t *testing.T) {
	for name, command := range map[string][]string{"ends": {"sh", "-c", "echo no certificate; exit 3"}, "missing": {"./missing-program"}} {
		t.Run(name, func(t *testing.T) {
			s := soundSubject(fault{})
			s.Process = command
			if got := checkOne(t, s, "WH-PERF-4", 10*time.Second); got.Verdict != framework.Inconclusive {
				t.Errorf("%s: %s", got.Verdict, got.Reason)
			}
		})
	}
}
