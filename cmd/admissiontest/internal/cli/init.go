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
	"github.com/admissiontest/admissiontest/suites/policy"
)

// initFlags are the flags of init.
type initFlags struct{ to, version string }

func (a *app) initCommand() *cobra.Command {
	f := &initFlags{}
	command := &cobra.Command{
		Use:   "init FILE|DIR ...",
		Short: "Write a first PolicyTest for policies",
		Long: `Write a first PolicyTest for ValidatingAdmissionPolicies and MutatingAdmissionPolicies: for each
kind and operation that their rules match, an object that they allow, and one that each
validation denies. The objects are found on a kube-apiserver of this machine. What is not
found is a comment at the end of the file.

The files also have what the policies need: bindings, params, CustomResourceDefinitions. A
policy without a binding gets one from the PolicyTest. A file that exists is not overwritten.`,
		Example: `  admissiontest init policy.yaml
  admissiontest init config/policy crd.yaml params.yaml --to tests/policytest.yaml`,
		RunE: a.action(func(ctx context.Context, args []string) error { return a.initTest(ctx, f, args) }),
	}
	set := command.Flags()
	set.StringVar(&f.to, "to", "policytest.yaml", "file to write; - means standard output")
	set.StringVar(&f.version, "k8s-version", "", "the Kubernetes version, such as 1.37")
	return command
}

// initTest implements the command init.
func (a *app) initTest(ctx context.Context, f *initFlags, args []string) (err error) {
	if len(args) == 0 {
		return exit.Usagef("init: no arguments; want files or folders with policies")
	}
	folder := "."
	if f.to != toStdout {
		if _, err := os.Lstat(f.to); err == nil {
			return exit.Usagef("--to: %s exists: want another file", f.to)
		}
		folder = filepath.Dir(f.to)
	}
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
	if f.to == toStdout {
		_, err = fmt.Fprint(a.Stdout, text)
		return err
	}
	if err := writeNew(f.to, text); err != nil {
		return exit.Usagef("--to: %w", err)
	}
	a.note(fmt.Sprintf("%s: %d cases; not found: %d", f.to, len(draft.Cases), len(draft.Missing)))
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
	if len(draft.Missing) > 0 {
		out.WriteString("\n# Not found; write these cases yourself:\n")
	}
	for _, line := range draft.Missing {
		out.WriteString("# - " + strings.Join(strings.Fields(line), " ") + "\n")
	}
	return out.String(), nil
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
