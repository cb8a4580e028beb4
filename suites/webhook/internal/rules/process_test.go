package rules_test

import (
	"context"
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

// serveProgram serves the correct webhooks until SIGTERM. The faults are "exits", which ends at once, and "closes", which
// closes connections that are in use.
func serveProgram(fault, port, certDir string) {
	var draining atomic.Bool
	handler := &sound{}
	server := &http.Server{
		Addr: net.JoinHostPort("127.0.0.1", port), ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if draining.Load() {
				w.Header().Set("Connection", "close")
			}
			handler.ServeHTTP(w, r)
		}),
	}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	go func() {
		_ = server.ListenAndServeTLS(filepath.Join(certDir, "tls.crt"), filepath.Join(certDir, "tls.key"))
	}()
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

// The rule about a program finds the faults, and nothing in the correct program. A program that does not start, or does not answer,
// is inconclusive.
func TestProcess(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	serves := []string{program, "{port}", "{cert-dir}"}
	for name, test := range map[string]struct {
		command []string
		want    framework.Verdict
	}{
		"sound": {serves, framework.Pass}, "exits": {serves, framework.Fail}, "closes": {serves, framework.Fail},
		"ends": {[]string{"sh", "-c", "echo no certificate; exit 3"}, framework.Inconclusive}, "missing": {[]string{"./missing-program"}, framework.Inconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(programVariable, name)
			s := soundSubject(fault{})
			s.Process = test.command
			prepared := check.Prepare(t.Context(), s)
			at := slices.IndexFunc(rules.All(), func(each check.Rule) bool { return each.ID == "WH-PERF-4" })
			if got := prepared.Check(rules.All()[at], prepared.Webhooks[0], 30*time.Second); got.Verdict != test.want {
				t.Errorf("%s, want %s: %s", got.Verdict, test.want, got.Reason)
			}
		})
	}
}
