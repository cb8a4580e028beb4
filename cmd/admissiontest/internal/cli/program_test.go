//go:build unix

package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"

	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// bareTarget is a target and its provider, on which an installation can fail.
type bareTarget struct {
	targettest.Target
	target.Provider
	fails error
}

func (b bareTarget) Start(context.Context, target.StartOptions) (target.Target, error) { return b, nil }

func (b bareTarget) InstallForRun(context.Context, []map[string]any) error { return b.fails }

// The program starts when what is installed for the run is there, and stops with the target.
func TestProgramStartsAfterInstallation(t *testing.T) {
	for name, test := range map[string]struct {
		installs          bool
		fails             error
		atOnce, installed bool
	}{
		"nothing is installed":   {atOnce: true},
		"something is installed": {installs: true, installed: true},
		"an installation fails":  {installs: true, fails: errors.New("no")},
	} {
		t.Run(name, func(t *testing.T) {
			p := &userProgram{Command: []string{"sleep", "1000"}, Progress: func(string) {}}
			provider := p.Provider(bareTarget{fails: test.fails}, func(error) {}, test.installs)
			target, err := provider.Start(t.Context(), target.StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := p.running != nil; got != test.atOnce {
				t.Errorf("after Start it runs: %t; want %t", got, test.atOnce)
			}
			if test.installs {
				if err := target.InstallForRun(t.Context(), nil); !errors.Is(err, test.fails) {
					t.Errorf("got %v, want %v", err, test.fails)
				}
				if got := p.running != nil; got != test.installed {
					t.Errorf("after the installation it runs: %t; want %t", got, test.installed)
				}
			}
			if err := target.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if p.running != nil {
				p.running.WaitUntilEnded(t.Context())
			}
		})
	}
}

// The certificate is valid for this machine and for the Services, and stays the same for the same Services.
func TestCertify(t *testing.T) {
	p := &userProgram{Command: []string{"sleep"}}
	authorities, err := p.Certify([]string{"guard-system/guard"})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(p.certificates["tls.crt"], p.certificates["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authorities)
	for name, valid := range map[string]bool{"127.0.0.1": true, "::1": true, "localhost": true, "guard.guard-system.svc": true, "other.guard-system.svc": false} {
		t.Run(name, func(t *testing.T) {
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); (err == nil) != valid {
				t.Errorf("got %v, want valid: %t", err, valid)
			}
		})
	}
	again, err := p.Certify([]string{"guard-system/guard"})
	if err != nil || !bytes.Equal(authorities, again) {
		t.Errorf("another certificate for the same Services: %v", err)
	}
}
