package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/ready"
	"github.com/admissiontest/admissiontest/internal/shipped"
)

func (a *app) waitCommand() *cobra.Command {
	var cluster clusterFlags
	var options ready.Options
	var policies, objects []string
	var timeout time.Duration
	command := &cobra.Command{
		Use:   "wait --webhook NAME | --policies FILE|NAME",
		Short: "Wait until API servers call webhooks and evaluate policies",
		Long: `Wait until each API server that can be reached calls webhooks and evaluates policies. What is sent are dry runs of
creations; nothing is written. docs/running.md says what shows it, and which rights that needs.

Exit codes: 0 ready, 1 not ready within --timeout, 2 usage error or a bad file,
4 the API server cannot be reached, 5 nothing shows whether it is ready, or a right is missing.`,
		Example: "  admissiontest wait --webhook guard\n  admissiontest wait --policies policies.yaml --timeout 30s",
		Args:    noArguments,
	}
	command.RunE = a.reading(func(ctx context.Context, _ []string) error {
		if len(options.Webhooks)+len(policies) == 0 || timeout <= 0 {
			return usagef("nothing to wait for: give --webhook or --policies, and a --timeout of more than 0")
		}
		for _, policy := range policies {
			names, err := policyNames(policy)
			if err != nil {
				return err
			}
			options.Policies = append(options.Policies, names...)
		}
		if len(objects) > 0 {
			project, err := shipped.Read(objects...)
			if err != nil {
				return err
			}
			options.Objects = project.Objects()
		}
		config, err := cluster.provider(nil).Connect(ctx)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		options.Progress = a.note
		return notReady(ready.Wait(ctx, config, options))
	})
	cluster.add(command)
	set := command.Flags()
	set.StringSliceVar(&options.Webhooks, "webhook", nil, "names of webhook configurations, validating or mutating")
	set.StringSliceVar(&policies, "policies", nil, "names of policies, or files or folders with policies")
	set.StringSliceVar(&objects, "object", nil, "files with objects that the dry runs create first: what a policy denies, for example (default: derived from the rules)")
	set.DurationVar(&timeout, "timeout", 2*time.Minute, "how long to wait")
	return command
}

// policyNames returns the names of the policies in a file or folder, or the name of a policy itself.
func policyNames(name string) (names []string, err error) {
	if _, err := os.Stat(name); err != nil && filepath.Base(name) == name && !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
		return []string{name}, nil
	}
	project, err := shipped.Read(name)
	if err != nil {
		return nil, err
	}
	for _, m := range project.Manifests {
		if isRealPolicy(m) {
			names = append(names, (&unstructured.Unstructured{Object: m.Object}).GetName())
		}
	}
	if len(names) == 0 {
		return nil, usagef("--policies %s: there is no policy in it", name)
	}
	return names, nil
}

// notReady returns the error of ready.Wait with its exit code.
func notReady(err error) error {
	var first *ready.Error
	switch known := errors.As(err, &first); {
	case err == nil || errors.Is(err, framework.ErrNoResponse):
		return err
	case apierrors.IsForbidden(err) || known && first.Unknown:
		return withCode(exitInconclusive, err)
	case known:
		return withCode(exitFail, err)
	default:
		return err
	}
}
