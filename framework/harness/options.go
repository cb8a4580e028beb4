package harness

import (
	"fmt"

	"github.com/admissiontest/admissiontest/framework"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

// optionsOf are the operation's options, and whether they ask for a dry run. What the
// Request does not say is what the API server makes of a query and a body.
func optionsOf(request *framework.Request, operation admission.Operation) (runtime.Object, bool, error) {
	options := request.OperationOptions
	if absent(options) {
		made, err := defaultOptions(request, operation)
		if err != nil {
			return nil, false, err
		}
		options = made
	} else {
		options = options.DeepCopyObject()
	}
	var kind string
	var dryRun *[]string
	switch typed := options.(type) {
	case *metav1.CreateOptions:
		kind, dryRun = "CreateOptions", &typed.DryRun
	case *metav1.UpdateOptions:
		kind, dryRun = "UpdateOptions", &typed.DryRun
	case *metav1.DeleteOptions:
		kind, dryRun = "DeleteOptions", &typed.DryRun
	default: // of an Impossible request
		return options, request.DryRun, nil
	}
	options.GetObjectKind().SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind(kind))
	if request.DryRun && len(*dryRun) == 0 {
		*dryRun = []string{metav1.DryRunAll}
	}
	return options, len(*dryRun) > 0, nil
}

func defaultOptions(request *framework.Request, operation admission.Operation) (runtime.Object, error) {
	switch operation {
	case admission.Create:
		return &metav1.CreateOptions{FieldManager: request.Options.Get("fieldManager"), FieldValidation: request.Options.Get("fieldValidation")}, nil
	case admission.Update:
		return &metav1.UpdateOptions{FieldManager: request.Options.Get("fieldManager"), FieldValidation: request.Options.Get("fieldValidation")}, nil
	case admission.Delete:
		options := &metav1.DeleteOptions{}
		if request.DeleteOptions == nil {
			return options, nil
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(request.DeleteOptions, options); err != nil {
			return nil, fmt.Errorf("read the Request's DeleteOptions: %w", err)
		}
		return options, nil
	default: // of an Impossible request
		return nil, nil
	}
}
