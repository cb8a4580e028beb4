package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/cel"
)

// dropped returns a framework.ManifestError if the API server closes the connection because of a policy with an optional element of a list:
// kube-apiserver 1.37.2 does, and a request that is repeated only takes longer.
func (i *Installer) dropped(ctx context.Context, res client.Resource, manifest map[string]any) error {
	field := optionalElement(manifest["spec"], "spec")
	if field == "" {
		return nil
	}
	if _, err := i.Client.Send(ctx, client.DryRun(res.GroupVersionResource, "", manifest)); !errors.Is(err, framework.ErrNoResponse) {
		return nil
	}
	return &framework.ManifestError{Field: field, Err: fmt.Errorf("%s: the API server closes the connection for an optional element of a list, such as [?a]: this is a fault of Kubernetes, not of the policy: write a.hasValue() ? [a.value()] : []", field)}
}

// optionalElement returns the path of the first expression in a value that has an optional element of a list, or "".
func optionalElement(value any, path string) string {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if _, isText := value[name].(string); isText && !strings.HasSuffix(name, "xpression") {
				continue
			}
			if found := optionalElement(value[name], path+"."+name); found != "" {
				return found
			}
		}
	case []any:
		for i, item := range value {
			if found := optionalElement(item, fmt.Sprintf("%s[%d]", path, i)); found != "" {
				return found
			}
		}
	case string:
		if cel.HasOptionalElement(value) {
			return path
		}
	}
	return ""
}
