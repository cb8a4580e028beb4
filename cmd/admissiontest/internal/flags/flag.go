package flags

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// Args returns the named flags that a command line sets, with their values, for another command line.
func Args(set *pflag.FlagSet, names ...string) []string {
	var args []string
	for _, name := range names {
		flag := set.Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		switch value := flag.Value.(type) {
		case *Plugins:
			for _, one := range *value {
				args = append(args, "--"+name, one.String())
			}
		case pflag.SliceValue:
			for _, one := range value.GetSlice() {
				args = append(args, "--"+name, one)
			}
		default:
			if value.Type() != "bool" {
				args = append(args, "--"+name, value.String())
			} else {
				args = append(args, strings.TrimSuffix("--"+name+"="+value.String(), "=true"))
			}
		}
	}
	return args
}
