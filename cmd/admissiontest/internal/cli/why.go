package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/internal/doctor"
	"github.com/admissiontest/admissiontest/internal/shipped"
)

// whyOptions are the flags of why.
type whyOptions struct {
	requestFlags
	cluster        clusterFlags
	live           bool
	configurations []string
	version        string
	out            outputFlag
}

func (a *app) whyCommand() *cobra.Command {
	var o whyOptions
	command := &cobra.Command{
		Use:   "why FILE",
		Short: "Say which webhooks and policies decide about a request, and why the others do not",
		Long: `Say which plugins, webhooks and policies decide about the request for an object, in the order
in which an API server calls them, and why the others do not.

FILE has the object. The configurations, policies and bindings, and the namespaces and
CustomResourceDefinitions around them, come from a cluster (--kubeconfig), from files
(--configurations), or from both: files replace what the cluster has. No request is sent.`,
		Example: "  admissiontest why pod.yaml --configurations all.yaml\n  admissiontest why pod.yaml --kubeconfig ~/.kube/config --operation DELETE --as jane\n  admissiontest why deployment.yaml --kubeconfig ~/.kube/config --subresource scale -o json",
		Args:    oneObject,
	}
	command.RunE = a.reading(func(ctx context.Context, args []string) error {
		o.live = givenFlags(command, "kubeconfig", "context") != ""
		return a.why(ctx, args[0], o)
	})
	o.cluster.add(command)
	o.out.add(command)
	o.add(command, "CREATE, or what the subresource has", "an administrator")
	set := command.Flags()
	set.StringSliceVar(&o.configurations, "configurations", nil, "files or folders with configurations, policies and bindings")
	set.StringVar(&o.version, "k8s-version", "", "version of the API server that files are for, such as 1.37 (default: the oldest supported one, or that of the cluster)")
	return command
}

func (a *app) why(ctx context.Context, file string, o whyOptions) error {
	asJSON, err := o.out.json()
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	if len(o.configurations) == 0 && !o.live {
		return usagef("no webhooks and policies to ask: give --configurations or --kubeconfig")
	}
	q := doctor.Question{Operation: o.operation, Subresource: o.subresource}
	q.User.Name, q.User.Groups = o.user, o.groups
	var input doctor.Input
	if input.Minor, err = minorOf(o.version); err != nil {
		return err
	}
	if q.Object, err = onlyObject(file); err != nil {
		return err
	}
	if o.old != "" {
		if q.OldObject, err = onlyObject(o.old); err != nil {
			return err
		}
	}
	if len(o.configurations) > 0 {
		project, err := shipped.Read(o.configurations...)
		if err != nil {
			return err
		}
		input.Manifests = project.Manifests
	}
	if o.live {
		config, err := o.cluster.provider(nil).Connect(ctx)
		if err != nil {
			return err
		}
		if input.Cluster, err = doctor.ReadAdmission(ctx, config, input.Manifests); err != nil {
			return err
		}
	}
	answer, err := doctor.Why(ctx, input, q)
	if err != nil {
		return withCode(exitUsage, err)
	}
	if asJSON {
		return writeJSON(a.Stdout, answer)
	}
	_, err = fmt.Fprint(a.Stdout, answer.Text())
	return err
}

// onlyObject returns the object of a file that has one.
func onlyObject(file string) (map[string]any, error) {
	project, err := shipped.Read(file)
	if err != nil {
		return nil, err
	}
	if len(project.Manifests) != 1 {
		return nil, usagef("%s has %d objects; want the one of the request", file, len(project.Manifests))
	}
	return project.Manifests[0].Object, nil
}

// minorOf returns the minor version in a flag, or 0 if it is not given.
func minorOf(version string) (int, error) {
	if version == "" {
		return 0, nil
	}
	var minor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "1.%d", &minor); err != nil || minor < 1 {
		return 0, usagef("--k8s-version %q: want a version like 1.37", version)
	}
	return minor, nil
}
