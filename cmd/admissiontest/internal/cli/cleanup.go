package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/kind"
	"github.com/admissiontest/admissiontest/internal/apiserver"
)

func (a *app) cleanupCommand() *cobra.Command {
	var f clusterFlags
	var run, target string
	var dryRun bool
	command := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove objects that killed runs left on a cluster",
		Long: `Remove the objects that killed runs left on a cluster: objects that have the ID of the
run in their names, and objects whose field manager is the run. An object that only has
the label ` + apiserver.RunLabel + ` is not removed. Runs that
were alive in the last minute are skipped.

With --target kind: delete the kind clusters that killed runs created on this machine.`,
		Example: "  admissiontest cleanup --kubeconfig kubeconfig\n  admissiontest cleanup --run k3f9x\n  admissiontest cleanup --target kind",
		Args:    noArguments,
	}
	command.RunE = a.reading(func(ctx context.Context, _ []string) error {
		switch target {
		case framework.TargetKubeconfig:
		case framework.TargetKind:
			if given := givenFlags(command, "kubeconfig", "context", "run", "dry-run"); given != "" {
				return usagef("%s cannot be combined with --target kind, which deletes whole clusters", given)
			}
			return a.deleteClusters(ctx)
		default:
			return usagef("--target %q: want %s or %s", target, framework.TargetKubeconfig, framework.TargetKind)
		}
		id := strings.TrimPrefix(run, "at-")
		if command.Flags().Changed("run") && !regexp.MustCompile(`^[a-z0-9]{1,63}$`).MatchString(id) {
			return usagef("--run %q: want the ID of a run: lower-case letters and digits", run)
		}
		return a.cleanup(ctx, f, apiserver.CleanupOptions{Run: id, DryRun: dryRun, Progress: a.note})
	})
	f.add(command)
	command.Flags().StringVar(&target, "target", framework.TargetKubeconfig, "what to clean up: kubeconfig (objects on a cluster) or kind (whole kind clusters on this machine)")
	command.Flags().StringVar(&run, "run", "", "remove only the objects of this run: the value of its label "+apiserver.RunLabel+" (default: all runs that are not alive)")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be removed, and remove nothing")
	return command
}

// cleanup removes the objects that earlier runs did not remove.
func (a *app) cleanup(ctx context.Context, f clusterFlags, options apiserver.CleanupOptions) error {
	config, err := f.provider(nil).Connect(ctx)
	if err != nil {
		return err
	}
	removed, err := apiserver.Cleanup(ctx, config, options)
	if err != nil {
		return err
	}
	if options.DryRun {
		return a.printAll("would remove", removed)
	}
	return a.printAll("removed", removed)
}

// deleteClusters deletes the kind clusters of runs that were killed.
func (a *app) deleteClusters(ctx context.Context) error {
	found, err := kind.RunClusters(ctx)
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
	return errors.Join(append(errs, a.printAll("removed", removed))...)
}

// printAll prints a line for each object.
func (a *app) printAll(verb string, objects []string) error {
	for _, line := range objects {
		if _, err := fmt.Fprintln(a.Stdout, verb, line); err != nil {
			return err
		}
	}
	if len(objects) == 0 {
		a.note("nothing to remove")
	}
	return nil
}
