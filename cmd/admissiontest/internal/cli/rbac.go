package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/admissiontest/admissiontest/docs"
)

func (a *app) rbacCommand() *cobra.Command {
	var namespace, account string
	var aggregated bool
	command := &cobra.Command{
		Use:   "rbac",
		Short: "Print the roles that a run needs on an existing cluster",
		Long: `Print a manifest with a ServiceAccount and the rights that a run of the catalogue needs on an
existing cluster: docs/rbac.yaml. Its comments say what each role is for, and with which one the
account can become an administrator. Before it creates anything, a run names each right that its
scenarios need and the account does not have.`,
		Example: "  admissiontest rbac | kubectl apply -f -\n  admissiontest rbac --aggregated --namespace wardle --account apiserver",
		Args:    noArguments,
	}
	command.RunE = a.reading(func(context.Context, []string) error {
		text := docs.RBAC
		if given := givenFlags(command, "namespace", "account"); given != "" && !aggregated {
			return usagef("%s needs --aggregated: the manifest of a run is the same for all", given)
		}
		if aggregated {
			if found := validation.IsDNS1123Label(namespace); len(found) > 0 {
				return usagef("--namespace %q: %s", namespace, strings.Join(found, ", "))
			}
			if found := validation.IsDNS1123Subdomain(account); len(found) > 0 {
				return usagef("--account %q: %s", account, strings.Join(found, ", "))
			}
			text = docs.Aggregated(namespace, account)
		}
		if _, err := fmt.Fprint(a.Stdout, text); err != nil {
			return fmt.Errorf("write manifest: %w", err)
		}
		return nil
	})
	set := command.Flags()
	set.BoolVar(&aggregated, "aggregated", false, "print instead the rights that an aggregated API server needs for admission")
	set.StringVar(&namespace, "namespace", "admissiontest", "with --aggregated: namespace of the API server's ServiceAccount")
	set.StringVar(&account, "account", "admissiontest", "with --aggregated: name of the API server's ServiceAccount")
	return command
}
