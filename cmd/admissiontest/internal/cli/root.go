package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/admissiontest/admissiontest/internal/suggest"
)

// root makes the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "admissiontest",
		Short: "Conformance of Kubernetes admission, on any API server",
		Long: `admissiontest runs scenarios of Kubernetes admission (webhooks, policies, and the
API server that calls them) and reports which requirements hold.

Exit codes: 0 every selected MUST passed, 1 a requirement failed, 2 usage error,
3 nothing selected or nothing of it could be judged, 4 infrastructure error,
5 inconclusive, 130 interrupted.`,
		Version:       thisVersion().String(),
		Example:       "  admissiontest run\n  admissiontest run reinvocation my-scenarios/\n  admissiontest run --kubeconfig ~/.kube/config",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs, // knownCommand checks them
		RunE:          func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddCommand(
		a.runCommand(), a.initCommand(), a.contractCommand(), a.compareCommand(), a.doctorCommand(), a.whyCommand(), a.waitCommand(), a.reviewCommand(), a.serveCommand(), a.listCommand(), a.explainCommand(), a.assetsCommand(),
		a.reportCommand(), a.cleanupCommand(), a.rbacCommand(), a.imageCommand(), a.schemaCommand(), a.versionCommand(),
	)
	root.SetHelpCommand(helpCommand(root))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}

// helpCommand makes the command help. Unlike cobra's, it returns an error for an unknown
// topic.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := knownCommand(root, args); err != nil {
				return err
			}
			found, _, err := root.Find(args)
			if err != nil {
				return err
			}
			found.InitDefaultHelpFlag()
			found.InitDefaultVersionFlag()
			return found.Help()
		},
	}
}

// parent makes a command that only has subcommands.
func parent(use, short string, children ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{
		Use: use, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(children...)
	return command
}

// knownCommand returns an error with a suggestion if args name an unknown subcommand.
func knownCommand(root *cobra.Command, args []string) error {
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return nil
	}
	found, rest, err := root.Find(args)
	if err != nil || !found.HasSubCommands() {
		return err
	}
	at := slices.IndexFunc(rest, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if at < 0 || at > 0 && found.HasLocalFlags() { // after a flag, the argument can be the value of the flag
		return nil
	}
	var names []string
	for _, command := range found.Commands() {
		names = append(names, command.Name())
	}
	slices.Sort(names)
	return fmt.Errorf("unknown command %q for %q%s; there are %s",
		rest[at], found.CommandPath(), suggest.DidYouMean(rest[at], names), strings.Join(names, ", "))
}

// flagError adds a suggestion to the error of a flag.
func flagError(command *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		command.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, "--"+flag.Name) })
		if nearest := suggest.Nearest("--"+unknown.GetSpecifiedName(), names); nearest != "" {
			return fmt.Errorf("%w; did you mean %s?", err, nearest)
		}
	}
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	return fmt.Errorf("%w; see %s --help", err, command.CommandPath())
}

// noArguments returns an error if there are arguments.
func noArguments(command *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments; got %s", command.CommandPath(), strings.Join(args, " "))
	}
	return nil
}

// noContext adapts a function that needs no context and no arguments.
func noContext(do func() error) func(context.Context, []string) error {
	return func(context.Context, []string) error { return do() }
}
