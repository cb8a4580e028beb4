package hook

import (
	"io"
	"net/http"
	"strings"

	"github.com/admissiontest/admissiontest/framework"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// Conversion converts custom resources between the versions of their
// CustomResourceDefinition: it sets the apiVersion and moves fields.
// See https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#webhook-conversion
type Conversion struct {
	// Renames has the fields whose path differs between versions. Each item has the
	// dotted path by version: {v1: spec.size, v2: spec.replicas}. A version that is not
	// named does not have the field.
	Renames []map[string]string `json:"renames,omitempty"`
	// Fault is a failure to simulate instead of converting: http-500, hang, reset,
	// empty, not-json or refused.
	Fault Fault `json:"fault,omitempty"`
}

// RegisterConversion registers a conversion webhook for one CustomResourceDefinition.
// Its calls are not recorded, because an API server can convert at any time. An
// unknown Fault is an error, as in Register.
func (s *Server) RegisterConversion(owner, crd string, conversion Conversion) (ClientConfig, error) {
	return s.Register(Hook{
		Owner: owner, Configuration: "conversion", Webhook: crd, Phase: framework.Mutating,
		Script: Script{Replies: []Reply{{Fault: conversion.Fault}}}, conversion: &conversion,
	})
}

// convert answers one ConversionReview.
func (r *registration) convert(w http.ResponseWriter, request *http.Request, call *framework.Call) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, request.Body, largestCall))
	var review map[string]any
	if err == nil {
		err = json.Unmarshal(body, &review)
	}
	if err != nil {
		http.Error(w, "decode ConversionReview: "+err.Error(), http.StatusBadRequest)
		return
	}
	body, err = json.Marshal(r.hook.conversion.Answer(review))
	if err != nil {
		http.Error(w, "encode ConversionReview: "+err.Error(), http.StatusInternalServerError)
		return
	}
	made := answer{code: http.StatusOK, header: http.Header{"Content-Type": {"application/json"}}, body: body, fault: r.hook.conversion.Fault}
	made.misbehave()
	(&visit{hook: r.hook, owner: r.owner, call: call, writer: w, ctx: request.Context()}).send(made)
}

// Answer returns the response to a ConversionReview, with every object in the desired
// version.
func (c Conversion) Answer(review map[string]any) map[string]any {
	request, _ := review["request"].(map[string]any)
	desired, _ := request["desiredAPIVersion"].(string)
	objects, _ := request["objects"].([]any)
	converted := make([]any, 0, len(objects))
	for _, item := range objects {
		object, _ := item.(map[string]any)
		converted = append(converted, c.convert(runtime.DeepCopyJSON(object), desired))
	}
	return map[string]any{
		"apiVersion": review["apiVersion"], "kind": review["kind"],
		"response": map[string]any{
			"uid": request["uid"], "convertedObjects": converted, "result": map[string]any{"status": "Success"},
		},
	}
}

// convert converts one object to a version.
func (c Conversion) convert(object map[string]any, desired string) map[string]any {
	from, _ := object["apiVersion"].(string)
	object["apiVersion"] = desired
	from, to := versionOf(from), versionOf(desired)
	if from == to {
		return object
	}
	for _, rename := range c.Renames {
		source := strings.Split(rename[from], ".")
		value, found, err := unstructured.NestedFieldCopy(object, source...)
		if rename[from] == "" || !found || err != nil {
			continue
		}
		unstructured.RemoveNestedField(object, source...)
		if rename[to] != "" {
			// It fails only if a parent is not a map. The field is lost then.
			_ = unstructured.SetNestedField(object, value, strings.Split(rename[to], ".")...)
		}
	}
	return object
}

func versionOf(apiVersion string) string { return apiVersion[strings.LastIndex(apiVersion, "/")+1:] }
