package seeds

import (
	"cmp"
	"os"
	"testing"

	"github.com/admissiontest/admissiontest/framework"

	"github.com/admissiontest/admissiontest/suites/webhook"
)

func TestContract(t *testing.T) {
	s := &Server{}
	debugger := framework.User{Name: "ann", Groups: []string{"system:authenticated", "debuggers"}}
	file := func(name string) webhook.Manifest { return webhook.Manifest{File: "testdata/" + name + ".yaml"} }
	allow := webhook.SampleFiles("testdata/allow/*.yaml")
	allow = append(allow,
		webhook.Sample{Manifest: file("debug-good"), Operation: "UPDATE", Subresource: "ephemeralcontainers", Old: file("debug-old"), User: debugger},
		webhook.Sample{Manifest: file("eviction"), Operation: "CREATE", Subresource: "eviction"},
		webhook.Sample{Manifest: file("reject/widget-protected"), Operation: "DELETE", User: framework.User{Name: operatorSA, Groups: []string{"system:serviceaccounts", "system:authenticated"}}},
	)
	const registry = "is not of an allowed registry"
	reject := []webhook.Sample{
		{Manifest: file("reject/pod-registry"), Message: registry},
		{Manifest: file("reject/pod-init"), Message: registry},
		{Manifest: file("reject/pod-memory"), Message: "memory limit 9Gi is above 8Gi"},
		{Manifest: file("reject/pod-debug"), Operation: "UPDATE", Subresource: "ephemeralcontainers", Old: file("debug-old"), User: debugger, Message: registry},
		{Manifest: file("debug-good"), Operation: "UPDATE", Subresource: "ephemeralcontainers", Old: file("debug-old"), Message: "only the group debuggers"},
		{Manifest: file("reject/eviction"), Subresource: "eviction", Message: "grace period"},
		{Manifest: file("reject/deployment-registry"), Message: registry},
		{Manifest: file("reject/deployment-replicas"), Message: "51 replicas are more than 50"},
		{Manifest: file("reject/scale"), Operation: "UPDATE", Subresource: "scale", Old: file("scale-old"), Message: "51 replicas are more than 50"},
		{Manifest: file("reject/widget-image"), Message: registry},
		{Manifest: file("reject/widget-class"), Operation: "UPDATE", Old: file("allow/widget"), Message: "immutable"},
		{Manifest: file("reject/widget-shrink"), Operation: "UPDATE", Old: file("allow/widget"), Message: "must not shrink"},
		{Manifest: file("reject/widget-protected"), Operation: "DELETE", Message: "it is protected"},
	}
	webhook.Run(t, webhook.Subject{
		Handler:        s.Handler(),
		Configurations: webhook.Files("config/crd.yaml", cmp.Or(os.Getenv("CONFIG"), "config/webhook.yaml")),
		Allow:          allow,
		Reject:         reject,
		Effects:        s.Ledger,
	})
}
