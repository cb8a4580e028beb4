package check

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// Subject describes the plugin to check, and how to test it. Package contract documents its fields.
type Subject struct {
	Name             string
	Source           harness.Source
	World            []fakes.Option
	Inject           func(*fakes.World) []fakes.Injector
	Scheme           *runtime.Scheme
	Config           string
	Configs          Configs
	Allow, Reject    []framework.Request
	RejectWith       []Refusal
	AnnotationPrefix string
	Subresources     []string
	Enforced         []string
}

// Refusal is a request that the plugin must refuse, and how. Package contract documents its fields.
type Refusal struct {
	Request framework.Request
	Reason  metav1.StatusReason
	Field   string
	Text    string
}

// Configs has configurations of a plugin. Package contract documents its fields.
type Configs struct {
	Valid, Invalid []string
	Required       bool
}

// Requests returns all requests of the Subject: first those that it admits.
func (s Subject) Requests() []framework.Request {
	return append(append([]framework.Request{}, s.Allow...), s.Refused()...)
}

// Refused returns all requests that the plugin refuses.
func (s Subject) Refused() []framework.Request {
	refused := append([]framework.Request{}, s.Reject...)
	for _, each := range s.RejectWith {
		refused = append(refused, each.Request)
	}
	return refused
}
