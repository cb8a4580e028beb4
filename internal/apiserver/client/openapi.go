package client

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OpenAPI returns the OpenAPI v3 document of a group and version, as decoded JSON.
// See https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-v3
func (c *Client) OpenAPI(ctx context.Context, of schema.GroupVersion) (map[string]any, error) {
	path := "/openapi/v3/apis/" + of.String()
	if of.Group == "" {
		path = "/openapi/v3/api/" + of.Version
	}
	text, err := c.rest.Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI of %s: %w", of, withNoResponse(err))
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("read the OpenAPI of %s: %w", of, err)
	}
	return document, nil
}
