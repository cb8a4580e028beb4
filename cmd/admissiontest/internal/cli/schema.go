package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of scenario files",
		Long: `Print the JSON Schema (draft 2020-12) of scenario files, for editors.

Save it, and begin a scenario file with
  # yaml-language-server: $schema=FILE`,
		Example: "  admissiontest schema > scenario.schema.json",
		Args:    noArguments,
		RunE: a.reading(noContext(func() error {
			schema, err := scenario.Schema()
			if err != nil {
				return err
			}
			if _, err := a.Stdout.Write(schema); err != nil {
				return fmt.Errorf("write schema: %w", err)
			}
			return nil
		})),
	}
}
