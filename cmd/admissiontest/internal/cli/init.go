package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/suites/policy"
)

// toStdout is the value of --to for the standard output.
const toStdout = "-"

// initFlags are the flags of init. Run are the flags of the runs in which it tries what it found.
type initFlags struct {
	to, version string
	run         runFlags
}

func (a *app) initCommand() *cobra.Command {
	f := &initFlags{run: runFlags{selection: a.selection()}}
	defaults := &cobra.Command{}
	f.run.add(defaults)
	command := &cobra.Command{
		Use:   "init FILE|DIR ... [flags] [-- PROGRAM [ARGUMENT ...]]",
		Short: "Write a first PolicyTest for policies, or first scenarios for webhooks",
		Long: `Write a first PolicyTest for ValidatingAdmissionPolicies and MutatingAdmissionPolicies: for each
kind and operation that their rules match, an object that they allow, and one that each
validation denies. The objects are found on a kube-apiserver of this machine. What is not
found is a comment at the end of the file.

The files also have what the policies need: bindings, params, CustomResourceDefinitions. A
policy without a binding gets one from the PolicyTest. A file that exists is not overwritten.

Of files with webhook configurations, write a scenario for each webhook: for each kind and
operation that its rules, selectors and matchConditions select, a request that reaches it. With
PROGRAM, which serves the webhooks as for run, the scenarios also have its answers: codes,
messages, warnings, and what it changed. They are what it does today, so check them. The
scenarios pass when they are written.`,
		Example: `  admissiontest init policy.yaml
  admissiontest init config/policy crd.yaml params.yaml --to tests/policytest.yaml
  admissiontest init config/webhook/manifests.yaml crd.yaml -- ./my-webhook --port 9443 --cert-dir {cert-dir}`,
	}
	command.RunE = func(command *cobra.Command, args []string) (err error) {
		a.parsed = true
		if args, f.run.program.Command, err = cutProgram(command, args); err != nil {
			return err
		}
		if err := f.run.target.Check(defaults); err != nil {
			return err
		}
		return a.init(command.Context(), f, args)
	}
	set := command.Flags()
	set.StringVar(&f.to, "to", "", "file to write; - means standard output (default: policytest.yaml, or webhooks.yaml)")
	set.StringVar(&f.version, "k8s-version", "", "the Kubernetes version, such as 1.37")
	f.run.endpoints.Add(command)
	return command
}

// init implements the command init.
func (a *app) init(ctx context.Context, f *initFlags, args []string) error {
	if len(args) == 0 {
		return exit.Usagef("init: no arguments; want files or folders with policies, or with webhook configurations")
	}
	project, err := shipped.Read(args...)
	at := slices.IndexFunc(project.Manifests, isWebhooks)
	also := slices.IndexFunc(project.Manifests, func(m shipped.Manifest) bool { return object.IsPolicy(m.Object) })
	switch {
	case at >= 0 && err != nil:
		return err
	case at >= 0 && also >= 0:
		one, other := project.Manifests[at], project.Manifests[also]
		return exit.Usagef("init: %s:%d has webhooks and %s:%d policies; want files with one of both: run init once for each", one.File, one.Line, other.File, other.Line)
	case at < 0 && f.answers():
		return exit.Usagef("init: PROGRAM and --endpoint are for webhooks, and the files have no webhook configuration")
	case f.to == "" && at >= 0:
		f.to = "webhooks.yaml"
	case f.to == "":
		f.to = "policytest.yaml"
	}
	folder := "."
	if f.to != toStdout {
		if _, err := os.Lstat(f.to); err == nil {
			return exit.Usagef("--to: %s exists: want another file", f.to)
		}
		if folder = filepath.Dir(f.to); !isFolder(folder) {
			return exit.Usagef("--to: %s is no folder; want a file in a folder that exists", folder)
		}
	}
	if err := f.run.program.Check(nil, nil); err != nil {
		return err
	}
	if at >= 0 {
		return a.initWebhooks(ctx, f, folder, project)
	}
	return a.initTest(ctx, f, folder, args)
}

// isFolder reports whether a path is a folder.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// initTest writes a PolicyTest.
func (a *app) initTest(ctx context.Context, f *initFlags, folder string, args []string) (err error) {
	policies, err := relativeTo(folder, args)
	if err != nil {
		return err
	}
	server := &policy.Server{KubernetesVersion: f.version}
	draft, err := server.Draft(ctx, policy.Subject{Policies: policy.Files(args...)})
	err = errors.Join(err, server.Close(ctx))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, policy.ErrSubject):
		return exit.Usagef("init: %s", strings.TrimPrefix(err.Error(), policy.ErrSubject.Error()+": "))
	case err != nil:
		return exit.New(exit.Infrastructure, fmt.Errorf("init: %w", err))
	case len(draft.Cases) == 0:
		return exit.New(exit.Nothing, fmt.Errorf("init: found no case:\n%s", strings.Join(draft.Missing, "\n")))
	}
	text, err := draftText(policies, draft)
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	return a.writeInit(f.to, text, fmt.Sprintf("%d cases; not found: %d", len(draft.Cases), len(draft.Missing)))
}

// writeInit writes a new file, or standard output, and notes what it has.
func (a *app) writeInit(to, text, note string) error {
	if to == toStdout {
		_, err := fmt.Fprint(a.Stdout, text)
		return err
	}
	if err := writeNew(to, text); err != nil {
		return exit.Usagef("--to: %w", err)
	}
	a.note(to + ": " + note)
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

// relativeTo returns the files, and the files in folders, relative to the folder of the test.
func relativeTo(folder string, args []string) ([]string, error) {
	from, err := filepath.Abs(folder)
	if err != nil {
		return nil, exit.Usagef("--to: %w", err)
	}
	var all []string
	for _, arg := range args {
		names := []string{arg}
		if entries, err := os.ReadDir(arg); err == nil {
			names = nil
			for _, entry := range entries {
				if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) && !entry.IsDir() {
					names = append(names, filepath.Join(arg, entry.Name()))
				}
			}
		}
		for _, name := range names {
			absolute, err := filepath.Abs(name)
			relative, wrong := filepath.Rel(from, absolute)
			if err := errors.Join(err, wrong); err != nil {
				return nil, exit.Usagef("init: %w", err)
			}
			all = append(all, filepath.ToSlash(relative))
		}
	}
	return all, nil
}

// draftText returns a PolicyTest with the cases of a Draft, and what was not found as comments.
func draftText(policies []string, draft policy.Draft) (string, error) {
	test := yaml.MapSlice{
		{Key: "apiVersion", Value: "admissiontest.dev/v1alpha1"}, {Key: "kind", Value: scenario.KindPolicyTest}, {Key: "policies", Value: policies},
	}
	if len(draft.Namespaces) > 0 {
		test = append(test, yaml.MapItem{Key: "namespaces", Value: draft.Namespaces})
	}
	var cases []yaml.MapSlice
	for _, c := range draft.Cases {
		cases = append(cases, caseFields(c))
	}
	text, err := yaml.Marshal(append(test, yaml.MapItem{Key: "cases", Value: cases}))
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.Write(text)
	out.WriteString("# contract: {} # also checks the rules that hold for every policy\n")
	return out.String() + notFound("cases", draft.Missing), nil
}

// notFound returns what was not found, as comments.
func notFound(what string, missing []string) string {
	if len(missing) == 0 {
		return ""
	}
	text := "\n# Not found; write these " + what + " yourself:\n"
	for _, line := range missing {
		text += "# - " + strings.Join(strings.Fields(line), " ") + "\n"
	}
	return text
}

// caseFields returns the fields of a case, in the order in which they are read best.
func caseFields(c scenario.PolicyCase) yaml.MapSlice {
	fields := yaml.MapSlice{{Key: "name", Value: c.Name}}
	add := func(key string, value any, given bool) {
		if given {
			fields = append(fields, yaml.MapItem{Key: key, Value: value})
		}
	}
	add("operation", c.Operation, c.Operation != "")
	add("namespace", c.Namespace, c.Namespace != "")
	if c.As != nil {
		as := yaml.MapSlice{{Key: "name", Value: c.As.Name}}
		if len(c.As.Groups) > 0 {
			as = append(as, yaml.MapItem{Key: "groups", Value: c.As.Groups})
		}
		add("as", as, true)
	}
	if len(c.Old) > 0 {
		add("old", c.Old[0], true)
	}
	add("object", c.Object[0], true)
	add("allowed", true, c.Allowed != nil)
	if c.Denied != nil {
		denied := yaml.MapSlice{{Key: "policy", Value: c.Denied.Policy}}
		if len(c.Denied.Message) > 0 {
			denied = append(denied, yaml.MapItem{Key: "message", Value: c.Denied.Message[0]})
		}
		add("denied", denied, true)
	}
	add("mutated", c.Mutated, c.Mutated != nil)
	add("warned", c.Warned, c.Warned != nil)
	return fields
}
