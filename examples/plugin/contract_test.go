package plugin_test

import (
	"testing"

	"example.com/owner"
	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract"
)

func subject() contract.Subject {
	return contract.Subject{
		Source:  harness.FromRegister(plugin.PluginName, plugin.Register),
		World:   []fakes.Option{fakes.WithObjects(namespace("owned", "blue"), namespace("orphan", ""))},
		Configs: contract.Configs{Valid: []string{"defaultOwner: ops"}, Invalid: []string{"defaultOwner: []"}},
		Allow:   []framework.Request{framework.Create(pod("owned"))},
		Reject:  []framework.Request{framework.Create(pod("orphan")), framework.Create(pod("absent"))},
	}
}

func TestContract(t *testing.T) { contract.Run(t, subject()) }
