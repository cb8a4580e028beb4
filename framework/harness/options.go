package harness

import (
	"github.com/admissiontest/admissiontest/framework"
	objects "github.com/admissiontest/admissiontest/internal/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

// optionsOf returns the options object of a request, and whether the request is a dry run. If
// InProcess.Options is nil, it returns the options of a request that sets none.
func optionsOf(request *framework.Request, operation admission.Operation) (runtime.Object, bool) {
	options := request.InProcess.Options
	if objects.IsNil(options) {
		options = defaultOptions(operation)
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
		return options, request.DryRun
	}
	options.GetObjectKind().SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind(kind))
	if request.DryRun && len(*dryRun) == 0 {
		*dryRun = []string{metav1.DryRunAll}
	}
	return options, len(*dryRun) > 0
}

// defaultOptions returns the options of a request that sets none.
func defaultOptions(operation admission.Operation) runtime.Object {
	switch operation {
	case admission.Create:
		return &metav1.CreateOptions{}
	case admission.Update:
		return &metav1.UpdateOptions{}
	case admission.Delete:
		return &metav1.DeleteOptions{}
	default: // of an Impossible request
		return nil
	}
}
