package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/admissiontest/admissiontest/internal/review"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// requestFlags describe the request for an object.
type requestFlags struct {
	operation, subresource, old, user string
	groups                            []string
}

// add adds the flags to a command. The texts say what is the default.
func (f *requestFlags) add(command *cobra.Command, operation, user string) {
	set := command.Flags()
	set.StringVar(&f.operation, "operation", "", "CREATE, UPDATE, DELETE or CONNECT (default: "+operation+")")
	set.StringVar(&f.subresource, "subresource", "", "subresource of the object, such as status, scale or exec")
	set.StringVar(&f.old, "old", "", "file with the stored object of an update (default: the same object)")
	set.StringVar(&f.user, "as", "", "user that sends the request (default: "+user+")")
	set.StringSliceVar(&f.groups, "as-group", nil, "groups of the user")
}

// check returns a usage error for flags that cannot be right.
func (f *requestFlags) check() error {
	known := []string{review.OpCreate, review.OpUpdate, review.OpDelete, review.OpConnect}
	switch f.operation = strings.ToUpper(f.operation); {
	case f.operation != "" && !slices.Contains(known, f.operation):
		return usagef("--operation %q: want %s%s", f.operation, strings.Join(known, ", "), suggest.DidYouMean(f.operation, known))
	case f.old != "" && f.operation != review.OpUpdate:
		return usagef("--old needs --operation UPDATE: other requests have no stored object beside the new one")
	case len(f.groups) > 0 && f.user == "":
		return usagef("--as-group needs --as")
	}
	return nil
}

// oneObject returns an error unless there is one argument, the file with the object of a request.
func oneObject(command *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s: got %d arguments; want one file with the object of the request", command.CommandPath(), len(args))
	}
	return nil
}

// reviewOptions are the flags of review.
type reviewOptions struct {
	requestFlags
	definitions []string
	dryRun      bool
}

func (a *app) reviewCommand() *cobra.Command {
	var o reviewOptions
	command := &cobra.Command{
		Use:   "review FILE",
		Short: "Print the AdmissionReview that a webhook gets for an object",
		Long: `Print the AdmissionReview (admission.k8s.io/v1, JSON) that a webhook gets for an object, for
curl and other tools. FILE has the object. For UPDATE and DELETE it is stored: the metadata
that an API server sets is set.

The review is built in this process, as for a mutating webhook. The object is encoded as by an
API server, but it is not defaulted.`,
		Example: "  admissiontest review pod.yaml\n  admissiontest review pod.yaml --operation CONNECT --subresource exec\n  admissiontest review pod.yaml | curl --cacert ca.crt -H 'Content-Type: application/json' --data-binary @- https://localhost:9443/validate",
		Args:    oneObject,
	}
	command.RunE = a.reading(func(_ context.Context, args []string) error { return a.review(args[0], o) })
	o.add(command, review.OpCreate, "jane, an administrator of a namespace")
	set := command.Flags()
	set.StringSliceVar(&o.definitions, "definitions", nil, "files or folders with the CustomResourceDefinition of the object")
	set.BoolVar(&o.dryRun, "dry-run", false, "the request is a dry run")
	return command
}

func (a *app) review(file string, o reviewOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	o.operation = cmp.Or(o.operation, review.OpCreate)
	var definitions []map[string]any
	if len(o.definitions) > 0 {
		project, err := shipped.Read(o.definitions...)
		if err != nil {
			return err
		}
		definitions = project.Objects()
	}
	kinds := review.NewKinds(definitions)
	object, err := onlyObject(file)
	if err != nil {
		return err
	}
	request, err := kinds.New(object, o.operation, o.subresource)
	if err != nil {
		return usagef("%s: %w", file, err)
	}
	if o.old != "" {
		old, err := onlyObject(o.old)
		if err != nil {
			return err
		}
		before, err := kinds.New(old, o.operation, o.subresource)
		if err != nil {
			return usagef("%s: %w", o.old, err)
		}
		request.OldObject = before.OldObject
	}
	if o.user != "" {
		request.User.Name, request.User.UID, request.User.Groups = o.user, "", o.groups
	}
	request.DryRun = o.dryRun
	return writeJSON(a.Stdout, review.Build(request, "admission.k8s.io/v1", string(uuid.NewUUID())))
}
