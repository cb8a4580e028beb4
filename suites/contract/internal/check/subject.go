package check

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// Subject has the fields of contract.Subject, which documents them.
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

// Configs has the fields of contract.Configs.
type Configs struct {
	Valid, Invalid []string
	Required       bool
}

// Refusal has the fields of contract.Refusal.
type Refusal struct {
	Request     framework.Request
	Reason      metav1.StatusReason
	Field, Text string
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
