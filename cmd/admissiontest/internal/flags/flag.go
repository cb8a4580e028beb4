package flags

import (
	"strings"

	"github.com/spf13/cobra"
)

// Complete registers the values of a flag for shell completion.
func Complete(command *cobra.Command, flag string, values ...string) {
	// The only possible error is an unknown flag, which the test of completion would find.
	_ = command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// Given returns which of the named flags the command line sets, "--a and --b". It is
// empty if the command line sets none.
func Given(command *cobra.Command, names ...string) string {
	var found []string
	for _, name := range names {
		if command.Flags().Changed(name) {
			found = append(found, "--"+name)
		}
	}
	return strings.Join(found, " and ")
}
