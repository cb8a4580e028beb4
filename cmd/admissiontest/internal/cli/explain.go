package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/userfile"
)

// timelineHelp explains the timeline that a run prints for a failure.
const timelineHelp = `If a scenario fails, run prints the first admission call that differs from what is
expected, and with -v the complete timeline. A line has: milliseconds since the request
was sent; "observed" (a Hook received the call) or "inferred" (from the audit log); the
phase; the round (1 and higher are reinvocations); the webhook; the request and the
response. The line of the first call that differs begins with ">".`

func (a *app) explainCommand() *cobra.Command {
	chosen := a.selection()
	return &cobra.Command{
		Use:   "explain NAME|FILE ...",
		Short: "Explain scenarios: the file of each, and how to read a failure",
		Example: `  admissiontest explain reinvocation.if-needed.again-after-later-change
  admissiontest explain my-scenarios/label.yaml`,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s: no arguments; want the name or file of a scenario: admissiontest list prints the names", command.CommandPath())
			}
			return nil
		},
		RunE: a.reading(func(_ context.Context, args []string) error {
			selected, err := chosen.resolve(args, scenario.LoadOptions{AnyInstalled: true, AllowServerFlags: []string{"*"}})
			if err != nil {
				return err
			}
			for i, s := range scenario.Cases(selected) {
				if i > 0 {
					_, _ = fmt.Fprintln(a.Stdout)
				}
				if err := a.explain(s, chosen.fromFiles[s.Metadata.Name]); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintf(a.Stdout, "\n%s\n", timelineHelp)
			return err
		}),
	}
}

// explain writes one scenario.
func (a *app) explain(s scenario.Scenario, user bool) error {
	var content []byte
	var err error
	file := s.File
	if user {
		content, err = userfile.Read(s.File)
	} else {
		content, err = fs.ReadFile(a.catalogue, s.File)
		file = "scenarios/" + s.File + " in the catalogue"
	}
	if err != nil {
		return fmt.Errorf("explain %s: %w", s.Metadata.Name, err)
	}
	if _, err := fmt.Fprintf(a.Stdout, "%s  %s\n", s.Metadata.Name, s.Spec.Level); err != nil {
		return err
	}
	field(a.Stdout, "file", file)
	text := strings.TrimRight(testText(strings.ReplaceAll(string(content), "\r\n", "\n"), s), "\n")
	_, err = fmt.Fprintf(a.Stdout, "\n  %s\n", strings.ReplaceAll(text, "\n", "\n  "))
	return err
}

// field writes a label and a string, which may have several lines.
func field(w io.Writer, label, text string) {
	if text = strings.TrimSpace(text); text != "" {
		_, _ = fmt.Fprintf(w, "  %-12s  %s\n", label, strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", 16)))
	}
}

// testText returns the document of a scenario in a file, unchanged.
func testText(content string, s scenario.Scenario) string {
	lines := strings.Split(content, "\n")
	begins := func(line string) bool { return strings.HasPrefix(line, "---") }
	if end := slices.IndexFunc(lines[s.Line:], begins); end >= 0 {
		lines = lines[:s.Line+end]
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if begins(lines[i]) {
			return strings.Join(lines[i+1:], "\n")
		}
	}
	return strings.Join(lines, "\n")
}
