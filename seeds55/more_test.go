package seeds

import (
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/webhook"
)

// TestMore has samples for each branch, by an author who thinks of the faults.
func TestMore(t *testing.T) {
	s := &Server{}
	f := func(name string) webhook.Manifest { return dbgFile("more/" + name) }
	const registry = "is not of an allowed registry"
	sa := framework.User{Name: "system:serviceaccount:web:ci", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:web", "system:authenticated"}}
	evilSA := framework.User{Name: "system:serviceaccount:fleet-system-evil:x", Groups: []string{"system:authenticated"}}
	anti := framework.User{Name: "bob", Groups: []string{"system:authenticated", "no-debuggers"}}
	webhook.Run(t, webhook.Subject{
		Handler:        s.Handler(),
		Configurations: webhook.Files("config/crd.yaml", "config/webhook.yaml"),
		Allow:          []webhook.Sample{{Manifest: f("logger")}, {Manifest: f("deployment-platform")}, {Manifest: dbgFile("allow/widget")}},
		Untouched:      []webhook.Sample{{Manifest: f("untouched-widget")}, {Manifest: f("untouched-five")}, {Manifest: f("untouched-pod")}},
		Reject: []webhook.Sample{
			{Manifest: f("evil"), Message: registry}, {Manifest: f("contains"), Message: registry}, {Manifest: f("platform"), Message: registry}, {Manifest: f("optout"), Message: registry},
			{Manifest: f("sa"), User: sa, Message: registry}, {Manifest: f("sa"), User: evilSA, Message: registry},
			{Manifest: dbgFile("debug-good"), Operation: "UPDATE", Subresource: "ephemeralcontainers", Old: dbgFile("debug-old"), User: anti, Message: "only the group"},
			{Manifest: f("unset"), Operation: "UPDATE", Old: dbgFile("allow/widget"), Message: "immutable"},
		},
		Effects: s.Ledger,
	}, webhook.Only("WH-VERDICT-1", "WH-VERDICT-2", "WH-FIELD-1", "WH-FIELD-2", "WH-FIELD-7", "WH-IDEM-1", "WH-IDEM-2", "WH-UPDATE-1", "WH-UPDATE-3", "WH-SHAPE-1"))
}
