package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/docs"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [" + strings.Join(docs.Schemas(), "|") + "]",
		Short: "Print the JSON Schema of scenario files, PolicyTests or reports",
		Long: `Print a JSON Schema (draft 2020-12), for editors and other programs. Without a name it is
that of scenario, which also has PolicyTests.

Save it, and begin a scenario file with
  # yaml-language-server: $schema=FILE`,
		Example:   "  admissiontest schema > scenario.schema.json",
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: docs.Schemas(),
		RunE:      a.reading(func(_ context.Context, formats []string) error { return a.schema(formats) }),
	}
}

// schema prints the schema of a format, which is scenario if there is none.
func (a *app) schema(formats []string) error {
	formats = append(formats, "scenario")
	if !slices.Contains(docs.Schemas(), formats[0]) {
		return usagef("schema %q: want one of %s", formats[0], strings.Join(docs.Schemas(), ", "))
	}
	schema, err := docs.Schema(formats[0])
	if err != nil {
		return err
	}
	if _, err := a.Stdout.Write(schema); err != nil {
		return fmt.Errorf("write schema: %w", err)
	}
	return nil
}
