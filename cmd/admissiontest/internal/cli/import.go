package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/internal/kyverno"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// toStdout is the value of --to for the standard output.
const toStdout = "-"

// importFlags are the flags of the command import.
type importFlags struct {
	to    string
	force bool
}

func (a *app) importCommand() *cobra.Command {
	f := &importFlags{}
	command := &cobra.Command{
		Use:   "import kyverno FILE|DIR ...",
		Short: "Convert tests of other tools to PolicyTests",
		Long: `Convert tests of other tools to PolicyTests, which the command run accepts.

kyverno: a kyverno-test.yaml, or all below a folder. Results for ValidatingAdmissionPolicy
and MutatingAdmissionPolicy are converted; what is left out is printed. The policies and
resources stay where they are: the paths in a PolicyTest are relative to the folder of --to,
or to the working directory. A test that cannot be read is reported, the others are converted,
and the exit code is 2.`,
		Example: `  admissiontest import kyverno tests/ --to policytests
  admissiontest import kyverno tests/owner/kyverno-test.yaml | admissiontest run -`,
		RunE: a.reading(func(_ context.Context, args []string) error { return a.importTests(f, args) }),
	}
	set := command.Flags()
	set.StringVar(&f.to, "to", toStdout, "folder in which to write one file for each test; - means standard output")
	set.BoolVar(&f.force, "force", false, "overwrite files")
	_ = command.MarkFlagDirname("to")
	return command
}

// importTests implements the command import.
func (a *app) importTests(f *importFlags, args []string) error {
	known := []string{"kyverno"}
	if len(args) == 0 || args[0] != known[0] {
		got := strings.Join(args[:min(len(args), 1)], "")
		return exit.Usagef("import: unknown tool %q; want one of: %s%s", got, strings.Join(known, ", "), suggest.DidYouMean(got, known))
	}
	if len(args) == 1 {
		return exit.Usagef("import kyverno: no arguments; want kyverno-test.yaml files, or folders with such files")
	}
	var err error
	files, wrong := kyvernoTests(args[1:])
	folder := f.to
	if folder == toStdout {
		folder = "."
	}
	var results []kyverno.Conversion
	for _, file := range files {
		result, broken := kyverno.Convert(file, folder)
		if broken != nil {
			wrong = append(wrong, broken)
			continue
		}
		for _, what := range result.LeftOut {
			a.note(fmt.Sprintf("%s: left out: %s", file, what))
		}
		if result.Text != "" {
			results = append(results, result)
		}
	}
	switch {
	case len(results) > 0 && f.to == toStdout:
		err = a.printTests(results)
	case len(results) > 0:
		err = f.write(results)
	case len(wrong) > 0:
	case len(files) == 0:
		err = exit.New(exit.Nothing, errors.New("import kyverno: found no kyverno-test.yaml file in the folders"))
	default:
		err = exit.New(exit.Nothing, fmt.Errorf("import kyverno: found nothing to convert in %d tests: want results for ValidatingAdmissionPolicy or MutatingAdmissionPolicy", len(files)))
	}
	if len(wrong) > 0 {
		wrong = append(wrong, fmt.Errorf("import kyverno: errors: %d; tests that can be converted: %d of %d", len(wrong), len(results), len(files)))
		return exit.New(exit.Usage, errors.Join(append(wrong, err)...))
	}
	return err
}

// printTests prints PolicyTests as documents of one file.
func (a *app) printTests(results []kyverno.Conversion) error {
	for i, result := range results {
		text := result.Text
		if i > 0 {
			text = "---\n" + text
		}
		if _, err := fmt.Fprint(a.Stdout, text); err != nil {
			return fmt.Errorf("write tests: %w", err)
		}
	}
	return nil
}

// write writes a file for each PolicyTest. Without --force it writes none if one exists.
func (f *importFlags) write(results []kyverno.Conversion) error {
	if err := os.MkdirAll(f.to, 0o755); err != nil { //nolint:gosec // files of a project, not secrets
		return exit.Usagef("--to: %w", err)
	}
	names := make([]string, len(results))
	taken := map[string]int{}
	for i, result := range results {
		name := result.Name
		if taken[name]++; taken[name] > 1 {
			name = fmt.Sprintf("%s-%d", name, taken[name])
		}
		names[i] = filepath.Join(f.to, name+".yaml")
		if _, err := os.Lstat(names[i]); err == nil && !f.force {
			return exit.Usagef("--to: %s exists: want another folder, or --force to overwrite", names[i])
		}
	}
	for i, result := range results {
		if err := os.WriteFile(names[i], []byte(result.Text), 0o644); err != nil { //nolint:gosec // files of a project, not secrets
			return fmt.Errorf("write tests: %w", err)
		}
	}
	return nil
}

// kyvernoTests returns the given files, and those below the given folders. The errors are about
// files and folders that cannot be read.
func kyvernoTests(args []string) (files []string, errs []error) {
	for _, arg := range args {
		_ = filepath.WalkDir(arg, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				errs = append(errs, fmt.Errorf("import kyverno: %w", err))
			case !entry.IsDir() && (name == arg || entry.Name() == "kyverno-test.yaml"):
				files = append(files, name)
			}
			return nil
		})
	}
	return files, errs
}
