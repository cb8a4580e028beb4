package cli

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/framework/cluster"
)

func (a *app) cleanupCommand() *cobra.Command {
	var f clusterFlags
	var run string
	command := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove what killed runs left on a cluster",
		Long: `Remove what runs left on a cluster: everything with the label
` + cluster.RunLabel + `. Runs that are still at work lose their objects too,
unless --run names another one.`,
		Example: "  admissiontest cleanup --kubeconfig kubeconfig\n  admissiontest cleanup --run k3f9x",
		Args:    noArguments,
	}
	command.RunE = a.action(func(ctx context.Context, _ []string) error {
		id := strings.TrimPrefix(run, "at-")
		if command.Flags().Changed("run") && !regexp.MustCompile(`^[a-z0-9]{1,63}$`).MatchString(id) {
			return usage("--run %q: want the ID of a run, which is lower-case letters and digits", run)
		}
		return a.cleanup(ctx, f, id)
	})
	f.flags(command)
	command.Flags().StringVar(&run, "run", "", "only what this run left: the part of a namespace's name between the dashes (default: any run)")
	return command
}

// cleanup removes what a run left, or with no run what any did.
func (a *app) cleanup(ctx context.Context, f clusterFlags, run string) error {
	config, err := f.provider(nil).Connect(ctx)
	if err != nil {
		return err
	}
	removed, err := cluster.Cleanup(ctx, cluster.Options{Config: config, Progress: a.note}, run)
	if err != nil {
		return err
	}
	for _, line := range removed {
		if _, err := fmt.Fprintln(a.Stdout, "removed", line); err != nil {
			return err
		}
	}
	if len(removed) == 0 {
		a.note("nothing to remove")
	}
	return nil
}
