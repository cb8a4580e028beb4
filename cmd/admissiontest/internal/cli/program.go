package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/target"
)

// programURL is where the program serves if there is no --endpoint: the default port of controller-runtime's
// webhook server.
const programURL = "https://127.0.0.1:9443"

// endLimit is how long to wait for the end of a program that did not answer a call. When a program
// ends, its connections close a moment before the process ends.
const endLimit = time.Second

// userProgram is the program after "--", which serves the webhooks under test while scenarios run. The zero value means that there is no program.
type userProgram struct {
	// Command is the program and its arguments. Empty means that there is no program.
	Command []string
	// Progress is called with a line for people. It must be set before Provider.
	Progress func(line string)

	// installs is true if the run installs objects before the first scenario.
	installs bool
	// end ends the run.
	end context.CancelCauseFunc

	running *processes.Program

	// certificates are the files of the folder {cert-dir}, valid for names.
	certificates map[string][]byte
	names        []string
}

// Args returns the program for another command line.
func (p *userProgram) Args() []string {
	if len(p.Command) == 0 {
		return nil
	}
	return append([]string{"--"}, p.Command...)
}

// Certify makes the serving certificate that the program can use, and returns the certificates to trust.
// It is valid for this machine, and for the Services, as NAMESPACE/NAME.
func (p *userProgram) Certify(services []string) (authorities []byte, err error) {
	names := []string{"localhost"}
	for _, service := range services {
		namespace, name, _ := strings.Cut(service, "/")
		names = append(names, name+"."+namespace+".svc")
	}
	if !slices.Equal(p.names, names) {
		certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv6loopback}, names)
		if err != nil {
			return nil, fmt.Errorf("make a certificate for %s: %w", p.Command[0], err)
		}
		// The certificate of the CA follows that of the server.
		p.names, p.certificates = names, map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": certificate}
	}
	return p.certificates["ca.crt"], nil
}

// endpoints returns where the webhooks under test are called: in the program, unless --endpoint says otherwise.
func (p *userProgram) endpoints(f *endpointFlags, selected []scenario.Scenario, manifests []map[string]any) (map[string]framework.Endpoint, error) {
	if len(p.Command) > 0 {
		services, _ := expect.WebhookAddresses(selected, manifests...)
		authorities, err := p.Certify(services)
		if err != nil {
			return nil, err
		}
		f.defaultURL, f.defaultCA = programURL, authorities
	}
	return f.parse(selected, manifests)
}

// Check returns a usage error if the program cannot be run, or cannot be used with the scenarios.
func (p *userProgram) Check(selected []scenario.Scenario, skip map[string]string) error {
	if len(p.Command) == 0 {
		return nil
	}
	if _, err := processes.FindProgram(p.Command[0]); err != nil {
		return usagef("%w", err)
	}
	for _, one := range scenario.Cases(selected) {
		_, skipped := skip[one.Metadata.Name]
		alone := one.Spec.Server != nil || one.Spec.Isolation == scenario.IsolationNone
		if alone && !skipped && len(expect.WebhooksUnderTest(one)) > 0 {
			return usagef("scenario %s needs its own API server, but its webhook under test runs in the program %s, whose KUBECONFIG is that of the default API server; add --skip %s, or start the program yourself and give --endpoint",
				one.Metadata.Name, p.Command[0], one.Metadata.Name)
		}
	}
	return nil
}

// Provider returns a provider that also starts the program, if there is one. Installs says whether
// the run installs objects before the first scenario. End ends the run.
func (p *userProgram) Provider(targets target.Provider, end context.CancelCauseFunc, installs bool) target.Provider {
	if len(p.Command) == 0 {
		return targets
	}
	p.end, p.installs = end, installs
	return withProgram{targets, p}
}

// withProgram is a Provider that starts the program after the default server has started and the
// objects for the run are installed: a controller needs its CustomResourceDefinitions.
type withProgram struct {
	target.Provider
	program *userProgram
}

// Start starts the target, and the program if it is the default server.
func (w withProgram) Start(ctx context.Context, options target.StartOptions) (target.Target, error) {
	target, err := w.Provider.Start(ctx, options)
	if err != nil || options.Profile != nil {
		return target, err
	}
	started := programTarget{target, w.program}
	if w.program.installs {
		return started, nil
	}
	if err := started.start(); err != nil {
		return nil, errors.Join(err, target.Close(context.WithoutCancel(ctx)))
	}
	return started, nil
}

// programTarget is a target beside which the program runs.
type programTarget struct {
	target.Target
	program *userProgram
}

func (t programTarget) start() (err error) {
	p := t.program
	p.Progress("starting " + strings.Join(p.Command, " "))
	p.running, err = processes.StartProgram(processes.ProgramOptions{
		Command: p.Command, KubeConfig: t.Optional().KubeConfig, Certificates: p.certificates,
		Ended: func(reason error) { p.end(&endedError{redact.Text(reason.Error())}) },
	})
	return err
}

// InstallForRun installs what all Sandboxes share, and starts the program. See target.Target.
func (t programTarget) InstallForRun(ctx context.Context, manifests []map[string]any) error {
	if err := t.Target.InstallForRun(ctx, manifests); err != nil {
		return err
	}
	return t.start()
}

// NewSandbox creates a Sandbox. See target.Target.
func (t programTarget) NewSandbox(ctx context.Context, options target.SandboxOptions) (target.Sandbox, error) {
	sandbox, err := t.Target.NewSandbox(ctx, options)
	if err != nil {
		return nil, err
	}
	return programSandbox{sandbox, t.program}, nil
}

// Close stops the program and closes the target.
func (t programTarget) Close(ctx context.Context) error {
	if t.program.running == nil { // the installation failed
		return t.Target.Close(ctx)
	}
	t.program.Progress("stopping " + t.program.Command[0])
	killed, err := t.program.running.Stop()
	if killed {
		t.program.Progress(t.program.Command[0] + " did not end after SIGTERM and was killed")
	}
	return errors.Join(err, t.Target.Close(ctx))
}

// programSandbox is a Sandbox whose webhooks the program serves.
type programSandbox struct {
	target.Sandbox
	program *userProgram
}

// Do sends a Request. If the program did not answer a call, Do waits up to endLimit for the end of
// the program. If the program ends, so does the run, before the result of this Request can decide
// anything.
func (s programSandbox) Do(ctx context.Context, request framework.Request) (framework.Result, error) {
	result, err := s.Sandbox.Do(ctx, request)
	for _, call := range result.Trace {
		if call.URL != "" && strings.HasPrefix(call.Answer, "no answer") {
			limited, cancel := context.WithTimeout(ctx, endLimit)
			defer cancel()
			s.program.running.WaitUntilEnded(limited)
			break
		}
	}
	return result, err
}

// endedError is the error of a program that ended before the run.
type endedError struct{ text string }

// Error has the end of the log of the program.
func (e *endedError) Error() string { return e.text }

// endedBefore returns the error of a run. If the program ended before the run, it returns that as
// the cause.
func endedBefore(run context.Context, err error) error {
	if ended := (*endedError)(nil); errors.As(context.Cause(run), &ended) {
		return ended
	}
	return err
}

// PrintLog writes the end of the log of the program, after a run that did not pass.
func (p *userProgram) PrintLog(w io.Writer, err error) {
	if ended := (*endedError)(nil); p.running == nil || err == nil || errors.As(err, &ended) {
		return // the error already has the end of the log
	}
	if text := p.running.Log(); text != "" {
		_, _ = fmt.Fprintf(w, "admissiontest: the last output of %s:\n  %s\n", p.Command[0], strings.ReplaceAll(redact.Text(text), "\n", "\n  "))
	}
}
