package cli

import (
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

// reviewOptions are the flags of review.
type reviewOptions struct {
	operation, subresource, old, user string
	definitions, groups               []string
	dryRun                            bool
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
		Args: func(command *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%s: got %d arguments; want one file with the object of the request", command.CommandPath(), len(args))
			}
			return nil
		},
	}
	command.RunE = a.reading(func(_ context.Context, args []string) error { return a.review(args[0], o) })
	set := command.Flags()
	set.StringVar(&o.operation, "operation", review.OpCreate, "CREATE, UPDATE, DELETE or CONNECT")
	set.StringVar(&o.subresource, "subresource", "", "subresource of the object, such as status, scale or exec")
	set.StringVar(&o.old, "old", "", "file with the stored object of an update (default: the same object)")
	set.StringVar(&o.user, "as", "", "user that sends the request (default: jane, an administrator of a namespace)")
	set.StringSliceVar(&o.groups, "as-group", nil, "groups of the user")
	set.StringSliceVar(&o.definitions, "definitions", nil, "files or folders with the CustomResourceDefinition of the object")
	set.BoolVar(&o.dryRun, "dry-run", false, "the request is a dry run")
	completeWith(command, "operation", review.OpCreate, review.OpUpdate, review.OpDelete, review.OpConnect)
	return command
}

func (a *app) review(file string, o reviewOptions) error {
	known := []string{review.OpCreate, review.OpUpdate, review.OpDelete, review.OpConnect}
	switch o.operation = strings.ToUpper(o.operation); {
	case !slices.Contains(known, o.operation):
		return usagef("--operation %q: want %s%s", o.operation, strings.Join(known, ", "), suggest.DidYouMean(o.operation, known))
	case o.old != "" && o.operation != review.OpUpdate:
		return usagef("--old needs --operation UPDATE: other requests have no stored object beside the new one")
	case len(o.groups) > 0 && o.user == "":
		return usagef("--as-group needs --as")
	}
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
