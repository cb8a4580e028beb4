package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/flags"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/rbac"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

func (a *app) rbacCommand() *cobra.Command {
	chosen := a.selection()
	var areas []string
	var transport string
	var options rbac.Options
	var aggregated bool
	command := &cobra.Command{
		Use:   "rbac [NAME|AREA|PATTERN|FILE|DIR ...]",
		Short: "Print the roles that a run needs on an existing cluster",
		Long: `Print a manifest with a ServiceAccount and the rights that a run of scenarios needs on
an existing cluster: a role for what every run does, a role for each area of scenarios
that needs more, and the bindings. The arguments select scenarios, as for run.
Comments name the rights with which the account can become an administrator.

No API server is contacted. The command knows the kinds of Kubernetes, and those that the
CustomResourceDefinitions in the scenarios define.`,
		Example:           "  admissiontest rbac --areas order,vap | kubectl apply -f -\n  admissiontest rbac --transport service > rbac.yaml\n  admissiontest rbac my-scenarios/ --namespace ci --account admission\n  admissiontest rbac --aggregated --namespace wardle --account apiserver",
		ValidArgsFunction: chosen.CompleteNames,
		RunE: a.reading(func(_ context.Context, args []string) error {
			if aggregated {
				return a.printAggregated(args, options)
			}
			known := []string{framework.TransportURL, framework.TransportService}
			if !slices.Contains(known, transport) {
				return exit.Usagef("--transport %q: want %s%s", transport, strings.Join(known, " or "), suggest.DidYouMean(transport, known))
			}
			options.Service = transport == framework.TransportService
			selected, err := chosen.Resolve(args, scenario.LoadOptions{AnyInstalled: true, AllowServerFlags: []string{"*"}})
			if err != nil {
				return err
			}
			if options.Scenarios, err = inAreas(selected, areas); err != nil {
				return err
			}
			return a.printRBAC(options)
		}),
	}
	chosen.Add(command)
	set := command.Flags()
	set.StringSliceVar(&areas, "areas", nil, "only scenarios of these areas")
	set.StringVar(&transport, "transport", framework.TransportURL, "transport of the run: url, or service, which needs more rights")
	set.StringVar(&options.Namespace, "namespace", "admissiontest", "namespace of the ServiceAccount")
	set.StringVar(&options.Account, "account", "admissiontest", "name of the ServiceAccount; the names of the roles begin with it")
	set.BoolVar(&aggregated, "aggregated", false, "print instead the rights that an aggregated API server needs for admission: --account is its ServiceAccount")
	flags.Complete(command, "transport", framework.TransportURL, framework.TransportService)
	return command
}

// printAggregated prints what an aggregated API server needs.
func (a *app) printAggregated(args []string, options rbac.Options) error {
	if len(args) > 0 {
		return exit.Usagef("--aggregated cannot be combined with scenarios (%q): the rights are the same for all", args[0])
	}
	text, err := rbac.Aggregated(options)
	if err != nil {
		return exit.New(exit.Usage, err)
	}
	if _, err := fmt.Fprint(a.Stdout, text); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return nil
}

// inAreas returns the scenarios of some areas. No areas means all.
func inAreas(all []scenario.Scenario, areas []string) ([]scenario.Scenario, error) {
	if len(areas) == 0 {
		return all, nil
	}
	var known []string
	for _, s := range all {
		if !slices.Contains(known, s.Area) {
			known = append(known, s.Area)
		}
	}
	slices.Sort(known)
	for _, area := range areas {
		if !slices.Contains(known, area) {
			return nil, exit.Usagef("--areas %q: want areas of the selected scenarios: %s%s", area, strings.Join(known, ", "), suggest.DidYouMean(area, known))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(s scenario.Scenario) bool { return !slices.Contains(areas, s.Area) }), nil
}

// printRBAC prints the manifest, and a note about each kind whose rights are not in it.
func (a *app) printRBAC(options rbac.Options) error {
	manifest, err := rbac.New(options)
	if err != nil {
		return exit.New(exit.Usage, err)
	}
	for _, kind := range manifest.Unknown {
		a.note(fmt.Sprintf("rights for %s %s are missing: Kubernetes does not serve this kind by default, and no CustomResourceDefinition of the scenarios defines it; add a rule for it", kind.GroupVersion(), kind.Kind))
	}
	if _, err := fmt.Fprint(a.Stdout, manifest.String()); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return nil
}
