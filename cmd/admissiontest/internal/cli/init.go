package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/userfile"
)

// toStdout is the value of --to for the standard output.
const toStdout = "-"

// initFlags are the flags of init. Run has the flags that run has too: the version, PROGRAM and --endpoint.
type initFlags struct {
	to  string
	run runFlags
}

func (a *app) initCommand() *cobra.Command {
	f := &initFlags{run: runFlags{selection: a.selection()}}
	defaults := &cobra.Command{}
	f.run.add(defaults)
	command := &cobra.Command{
		Use:   "init FILE|DIR ... [flags] [-- PROGRAM [ARGUMENT ...]]",
		Short: "Write a first PolicyTest for policies, or first scenarios for webhooks",
		Long: `Write a first PolicyTest for ValidatingAdmissionPolicies and MutatingAdmissionPolicies, or a
scenario for each request to the webhooks of configurations. For each kind and operation that the
rules match, it has the smallest object that a kube-apiserver of this machine accepts, and expects
what the request gets there today: that it is allowed or denied, warnings, what was changed, and which
webhook was called. Check that this is right. What is missing is a comment at the end.

The files also have what the policies or webhooks need: bindings, params,
CustomResourceDefinitions. A policy without a binding gets one from the PolicyTest. A file that exists
is not overwritten.

Give PROGRAM, which serves the webhooks as for run, or --endpoint. Without them, a server that allows
everything stands for the webhooks.`,
		Example: `  admissiontest init policy.yaml
  admissiontest init config/policy crd.yaml params.yaml --to tests/policytest.yaml
  admissiontest init config/webhook/manifests.yaml crd.yaml -- ./my-webhook --port 9443 --cert-dir {cert-dir}`,
	}
	command.RunE = func(command *cobra.Command, args []string) (err error) {
		a.parsed = true
		if args, f.run.program.Command, err = cutProgram(command, args); err != nil {
			return err
		}
		if err := f.run.target.check(defaults); err != nil {
			return err
		}
		return a.init(command.Context(), f, args)
	}
	set := command.Flags()
	set.StringVar(&f.to, "to", "", "file to write; - means standard output (default: policytest.yaml, or webhooks.yaml)")
	set.StringVar(&f.run.target.assets.Version, "k8s-version", "", "the Kubernetes version, such as 1.37")
	f.run.endpoints.add(command)
	f.run.set = set
	return command
}

// answers reports whether the webhooks are served.
func (f *initFlags) answers() bool {
	return len(f.run.program.Command) > 0 || len(argsOf(f.run.set, "endpoint", "endpoint-ca")) > 0
}

// init implements the command init.
func (a *app) init(ctx context.Context, f *initFlags, args []string) error {
	if len(args) == 0 {
		return usagef("init: no arguments; want files or folders with policies, or with webhook configurations")
	}
	if err := f.checkTo(); err != nil { // before the folder is read in which an earlier init wrote it
		return err
	}
	project, err := shipped.Read(args...)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(project.Manifests, isWebhooks)
	policy := slices.IndexFunc(project.Manifests, isRealPolicy)
	switch {
	case at >= 0 && policy >= 0:
		one, other := project.Manifests[at], project.Manifests[policy]
		return usagef("init: %s:%d has webhooks and %s:%d policies; want files with one of both: run init once for each", one.File, one.Line, other.File, other.Line)
	case at < 0 && f.answers():
		return usagef("init: PROGRAM and --endpoint are for webhooks, and the files have no webhook configuration")
	case at < 0 && policy < 0:
		return usagef("init: there is no ValidatingAdmissionPolicy or MutatingAdmissionPolicy, and no webhook configuration")
	case f.to == "" && at >= 0:
		f.to = "webhooks.yaml"
	case f.to == "":
		f.to = "policytest.yaml"
	}
	if err := f.checkTo(); err != nil {
		return err
	}
	d := &draft{app: a, flags: f, folder: filepath.Dir(f.to), project: project}
	if err := errors.Join(d.chooseFiles(), f.run.program.Check(nil, nil), d.read()); err != nil {
		return err
	}
	if err := d.fill(ctx); err != nil {
		return err
	}
	return d.write(at >= 0)
}

// checkTo checks --to, unless it is the standard output or not known yet.
func (f *initFlags) checkTo() error {
	if f.to == "" || f.to == toStdout {
		return nil
	}
	if _, err := os.Lstat(f.to); err == nil {
		return usagef("--to: %s exists: want another file", f.to)
	}
	if info, err := os.Stat(filepath.Dir(f.to)); err != nil || !info.IsDir() {
		return usagef("--to: %s is no folder; want a file in a folder that exists", filepath.Dir(f.to))
	}
	return nil
}

// isRealPolicy reports whether a manifest is a policy, and no binding.
func isRealPolicy(m shipped.Manifest) bool {
	return object.IsPolicy(m.Object) && !strings.HasSuffix(fmt.Sprint(m.Object["kind"]), "Binding")
}

func isWebhooks(m shipped.Manifest) bool {
	return m.Object["kind"] == "MutatingWebhookConfiguration" || m.Object["kind"] == "ValidatingWebhookConfiguration"
}

// chooseFiles chooses the files that the written file names, relative to its folder. Files with webhooks that also have other objects,
// or that scenarios cannot name, are for --install.
func (d *draft) chooseFiles() error {
	needed := func(m shipped.Manifest) bool {
		return isWebhooks(m) || m.Object["kind"] == "CustomResourceDefinition"
	}
	webhooks, others, seen := slices.ContainsFunc(d.project.Manifests, isWebhooks), map[string]bool{}, map[string]bool{}
	for _, m := range d.project.Manifests {
		others[m.File] = others[m.File] || !needed(m)
	}
	from, err := filepath.Abs(d.folder)
	if err != nil {
		return usagef("--to: %w", err)
	}
	for _, m := range d.project.Manifests {
		absolute, err := filepath.Abs(m.File)
		relative, wrong := filepath.Rel(from, absolute)
		switch err := errors.Join(err, wrong); {
		case err != nil:
			return usagef("init: %w", err)
		case seen[m.File] || webhooks && !needed(m):
			continue
		case webhooks && (others[m.File] || userfile.InTree(userfile.TreeOf(d.folder), m.File) != nil):
			d.install = append(d.install, m.File)
		default:
			d.files = append(d.files, filepath.ToSlash(relative))
		}
		seen[m.File] = true
	}
	return nil
}

// write writes the file.
func (d *draft) write(webhooks bool) error {
	documents, what := []yaml.MapSlice{d.policyTest()}, "cases"
	if webhooks {
		documents, what = d.scenarios(), "scenarios"
	}
	var text strings.Builder
	encoder := yaml.NewEncoder(&text)
	for _, document := range documents {
		if err := encoder.Encode(document); err != nil {
			return fmt.Errorf("init: %w", err)
		}
	}
	if err := encoder.Close(); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	count := 0
	for _, one := range d.subjects {
		count += len(one.requests)
	}
	if count == 0 {
		return withCode(exitNothing, fmt.Errorf("init: found no request:\n%s", strings.Join(d.missing, "\n")))
	}
	args := append([]string{"admissiontest", "run", d.flags.to}, argsOf(d.flags.run.set, "k8s-version", "endpoint", "endpoint-ca")...)
	for _, path := range d.install {
		args = append(args, "--install", path)
	}
	command := shellescape.QuoteCommand(append(args, d.flags.run.program.Args()...))
	if webhooks && !d.flags.answers() {
		command += " -- PROGRAM"
	}
	header := "# Written by admissiontest init. What is expected is what the requests get today: check that it is right. Run this file:\n# " + command + "\n"
	if !webhooks {
		text.WriteString("# contract: {} # also checks the rules that hold for every policy\n")
	}
	if len(d.missing) > 0 {
		text.WriteString("\n# TODO: write these " + what + ":\n")
	}
	for _, line := range d.missing {
		text.WriteString("# - " + strings.Join(strings.Fields(line), " ") + "\n")
	}
	if d.flags.to == toStdout {
		_, err := fmt.Fprint(d.Stdout, header+text.String())
		return err
	}
	if err := writeNew(d.flags.to, header+text.String()); err != nil {
		return usagef("--to: %w", err)
	}
	d.note(fmt.Sprintf("%s: %d %s; missing: %d; to run them:\n%s", d.flags.to, count, what, len(d.missing), command))
	return nil
}

// writeNew writes a file that does not exist.
func writeNew(name, text string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // a file of a project, not a secret
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// ended returns the error of an init whose API server or program failed.
func (d *draft) ended(ctx, running context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil || codeOf(err) == exitUsage:
		return err
	}
	err = withCode(exitInfrastructure, fmt.Errorf("init: %w", endedBefore(running, err)))
	d.flags.run.program.PrintLog(d.Stderr, err)
	return err
}

// endpoints returns where the webhooks are called.
func (d *draft) endpoints() (map[string]framework.Endpoint, error) {
	f := &d.flags.run
	if !d.flags.answers() {
		return nil, nil
	}
	return f.program.endpoints(&f.endpoints, nil, d.project.Objects())
}
