package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/framework/cluster/kind"
)

func (a *app) cleanupCommand() *cobra.Command {
	var f clusterFlags
	var run, target string
	command := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove what killed runs left on a cluster",
		Long: `Remove what runs left on a cluster: everything with the label
` + cluster.RunLabel + `. Runs that are still at work lose their objects too,
unless --run names another one.

With --target kind: delete the clusters that runs created here and did not live to
delete, all but those of --keep.`,
		Example: "  admissiontest cleanup --kubeconfig kubeconfig\n  admissiontest cleanup --run k3f9x\n  admissiontest cleanup --target kind",
		Args:    noArguments,
	}
	command.RunE = a.action(func(ctx context.Context, _ []string) error {
		switch target {
		case framework.TargetKubeconfig:
		case framework.TargetKind:
			if flags := given(command, "kubeconfig", "context", "run"); flags != "" {
				return usage("%s: has no meaning with --target kind, which deletes whole clusters; leave one out", flags)
			}
			return a.deleteLeftovers(ctx)
		default:
			return usage("--target %q: want %s or %s", target, framework.TargetKubeconfig, framework.TargetKind)
		}
		id := strings.TrimPrefix(run, "at-")
		if command.Flags().Changed("run") && !regexp.MustCompile(`^[a-z0-9]{1,63}$`).MatchString(id) {
			return usage("--run %q: want the ID of a run, which is lower-case letters and digits", run)
		}
		return a.cleanup(ctx, f, id)
	})
	f.flags(command)
	command.Flags().StringVar(&target, "target", framework.TargetKubeconfig, "where: kubeconfig, the cluster that it leads to, or kind, whole clusters of this machine")
	complete(command, "target", framework.TargetKubeconfig, framework.TargetKind)
	command.Flags().StringVar(&run, "run", "", "only what this run left: the part of a namespace's name between the dashes (default: any run)")
	return command
}

// cleanup removes what a run left, or with no run what any did.
func (a *app) cleanup(ctx context.Context, f clusterFlags, run string) error {
	config, err := f.provider(nil).Connect(ctx)
	if err != nil {
		return err
	}
	removed, err := cluster.Cleanup(ctx, config, run, a.note)
	if err != nil {
		return err
	}
	return a.tellRemoved(removed)
}

// deleteLeftovers deletes the kind clusters of runs that were killed.
func (a *app) deleteLeftovers(ctx context.Context) error {
	found, err := kind.Leftovers(ctx)
	if err != nil {
		return err
	}
	var removed []string
	var errs []error
	for _, one := range found {
		a.note("deleting kind cluster " + one.Name())
		if err := one.Delete(ctx); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, "kind cluster "+one.Name())
	}
	return errors.Join(append(errs, a.tellRemoved(removed))...)
}

// tellRemoved prints what was removed.
func (a *app) tellRemoved(removed []string) error {
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
