package scenarios_test

import (
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
)

// ourUser begins the names of the users and groups that the catalogue invents.
const ourUser = "admissiontest:"

// notOurs are the other groups, each with why the scenario needs it.
func notOurs() map[string]string {
	return map[string]string{
		"system:nodes":   "matchconditions.loop-breakers",
		"system:masters": "exemption.no-user-is-exempt",
	}
}

// unlistedUsers returns the users and groups of a scenario that RBAC cannot name before a
// run, or that are not our own. A scenario with its own server can use any.
func unlistedUsers(s scenario.Scenario) []string {
	if s.Spec.Server != nil {
		return nil // it runs only on its own server
	}
	var found []string
	for _, request := range execution.Of(s) {
		if request.User == nil {
			continue
		}
		if name := request.User.Name; !strings.HasPrefix(name, ourUser) || strings.Contains(name, "$(") {
			found = append(found, "user "+name)
		}
		for _, group := range request.User.Groups {
			if notOurs()[group] != s.Metadata.Name && !strings.HasPrefix(group, ourUser) || strings.Contains(group, "$(") {
				found = append(found, "group "+group)
			}
		}
	}
	return found
}

// The names of the users that scenarios impersonate are known before a run, so that a role
// can list them, and cannot belong to another user of a cluster.
func TestUsersAreOurOwn(t *testing.T) {
	impersonating := 0
	for _, s := range catalogue(t) {
		for _, request := range execution.Of(s) {
			if request.User != nil {
				impersonating++
				break
			}
		}
		for _, user := range unlistedUsers(s) {
			t.Errorf("%s impersonates %s; want names that begin with %s and contain no placeholder", s.Metadata.Name, user, ourUser)
		}
	}
	if impersonating < 5 {
		t.Errorf("%d scenarios impersonate a user; want the scenarios of wire, matchconditions, createupdate and exemption", impersonating)
	}
	as := func(user framework.User) scenario.Scenario {
		return scenario.Scenario{Spec: scenario.Spec{When: []scenario.Step{{As: &user, Create: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}}}}
	}
	for _, user := range []framework.User{{Name: "jane"}, {Name: "admissiontest:$(id)"}, {Name: "admissiontest:a", Groups: []string{"system:masters"}}} {
		t.Run(user.Name, func(t *testing.T) {
			if got := unlistedUsers(as(user)); len(got) != 1 {
				t.Errorf("unlistedUsers(%v) = %q; want one", user, got)
			}
		})
	}
}
