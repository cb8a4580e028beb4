package seeds

import (
	"testing"

	"github.com/admissiontest/admissiontest/suites/webhook"
)

// TestUpdateBypass: with FAULT=old-by-index any image is allowed on UPDATE.
func TestUpdateBypass(t *testing.T) {
	s := &Server{}
	const registry = "is not of an allowed registry"
	webhook.Run(t, webhook.Subject{
		Handler:        s.Handler(),
		Configurations: webhook.Files("config/crd.yaml", "config/webhook.yaml"),
		Allow:          webhook.SampleFiles("testdata/allow/*.yaml"),
		Reject: []webhook.Sample{{Manifest: dbgFile("reject/pod-registry"), Message: registry}, {Manifest: dbgFile("reject/deployment-registry"), Message: registry}, {Manifest: dbgFile("reject/widget-image"), Message: registry}},
		Effects: s.Ledger,
	})
}
