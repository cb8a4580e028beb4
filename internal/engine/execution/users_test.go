package execution

import (
	"fmt"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// infoTarget is a Target with a description.
type infoTarget struct {
	targettest.Target
	info framework.TargetInfo
}

func (t infoTarget) Info() framework.TargetInfo { return t.info }

// Only requests of controllers are left out. If the requests of every other user were, an API
// server that reports a wrong user would pass a scenario that expects no call.
func TestOwnUser(t *testing.T) {
	t.Parallel()
	c := &Case{ID: "at-x-00001", users: map[string]bool{"alice": true, "system:node:n": true}}
	on := func(kind string) {
		c.target = infoTarget{info: framework.TargetInfo{Kind: kind, User: "system:serviceaccount:admissiontest:runner"}}
	}
	for name, want := range map[string]bool{
		"system:serviceaccount:admissiontest:runner": true,
		"alice":            true,
		"system:node:n":    true,
		"mallory":          true,
		"":                 true,
		"system:anonymous": true,
		"system:serviceaccount:at-x-00001:default":                 true,
		"system:serviceaccount:kube-system:root-ca-cert-publisher": false,
		"system:serviceaccount:at-x-000012:default":                false,
		"system:kube-controller-manager":                           false,
		"system:node:other":                                        false,
	} {
		t.Run(name, func(t *testing.T) {
			on(framework.TargetKubeconfig)
			if got := c.ownUser(name); got != want {
				t.Errorf("on a cluster, %q: got %t, want %t", name, got, want)
			}
			on(framework.TargetEnvtest)
			if !c.ownUser(name) {
				t.Errorf("on target envtest, %q: got false, want every user", name)
			}
		})
	}
}

// Without isolation, webhooks get the requests of the API server to itself.
func TestOwnUserAlone(t *testing.T) {
	t.Parallel()
	c := &Case{ID: "at-x-00001", target: infoTarget{info: framework.TargetInfo{Kind: framework.TargetEnvtest, User: "admin"}}}
	for alone, want := range map[bool]bool{true: false, false: true} {
		t.Run(fmt.Sprintf("alone %t", alone), func(t *testing.T) {
			c.Scenario.Alone = alone
			if got := c.ownUser("system:apiserver"); got != want {
				t.Errorf("alone %t: got %t, want %t", alone, got, want)
			}
			if !c.ownUser("admin") || !c.ownUser("alice") {
				t.Errorf("alone %t: a user of the scenario is not its own", alone)
			}
		})
	}
}
