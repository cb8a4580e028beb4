package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/docs"
)

func (a *app) schemaCommand() *cobra.Command {
	formats := []string{"policytest", "report", "scenario"}
	return &cobra.Command{
		Use:   "schema [" + strings.Join(formats, "|") + "]",
		Short: "Print the JSON Schema of scenario files, PolicyTests or reports",
		Long: `Print a JSON Schema (draft 2020-12), for editors and other programs. Without a name it is
that of scenario, which also has PolicyTests.

Save it, and begin a scenario file with
  # yaml-language-server: $schema=FILE`,
		Example:   "  admissiontest schema > scenario.schema.json",
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: formats,
		RunE: a.reading(func(_ context.Context, args []string) error {
			format := append(args, "scenario")[0]
			schema, err := docs.Schema(format)
			if err != nil {
				return usagef("schema %q: want one of %s", format, strings.Join(formats, ", "))
			}
			_, err = a.Stdout.Write(schema)
			return err
		}),
	}
}
