package scenarios_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/scenarios"
)

// several are the areas with at least five scenarios.
func several() []string {
	return []string{
		"MATCH", "OBJSEL NSSEL", "MCOND", "WIRE", "RESP", "FAIL", "TIMEOUT", "DRYRUN", "EXEMPT",
		"DELETE DELCOLL", "SUBRES CONNECT", "WARN", "AUDIT", "VAP", "MAP",
	}
}

func catalogue(t *testing.T) []scenario.Scenario {
	t.Helper()
	all, err := scenario.Load(scenario.LoadOptions{FS: scenarios.FS})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// behaviourID matches the ID of a behaviour. A scenario names only IDs of behaviours.tsv.
var behaviourID = regexp.MustCompile(`^([A-Z][A-Z0-9]*|PLUGIN-[A-Za-z][A-Za-z0-9]*)-[0-9]{3}$`)

func known(t *testing.T) map[string]scenarios.Behaviour {
	t.Helper()
	list, err := scenarios.Behaviours()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]scenarios.Behaviour{}
	for _, behaviour := range list {
		if _, twice := out[behaviour.ID]; twice {
			t.Errorf("behaviours.tsv has %s twice", behaviour.ID)
		}
		if !slices.Contains(framework.Levels(), behaviour.Level) {
			t.Errorf("behaviours.tsv: %s has level %q", behaviour.ID, behaviour.Level)
		}
		if !behaviourID.MatchString(behaviour.ID) {
			t.Errorf("behaviours.tsv has the ID %q, want one such as REINV-002 or PLUGIN-LimitRanger-003", behaviour.ID)
		}
		out[behaviour.ID] = behaviour
	}
	return out
}

// uncovered returns the reasons in uncovered.yaml, by behaviour.
func uncovered(t *testing.T) map[string]string {
	t.Helper()
	out, err := scenarios.Uncovered()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A reader can check each requirement of the catalogue. The format does not require a source.
func TestSources(t *testing.T) {
	for _, s := range catalogue(t) {
		if len(s.Spec.Source) == 0 {
			t.Errorf("%s: %s has no source; want the URLs that the requirement comes from", s.File, s.Metadata.Name)
		}
	}
}

// Every MUST and SHOULD has a scenario or a reason in uncovered.yaml, and none has both.
func TestEveryBehaviour(t *testing.T) {
	table, without := known(t), uncovered(t)
	shown := map[string][]string{}
	for _, s := range catalogue(t) {
		for _, id := range s.Spec.Behaviours {
			if _, ok := table[id]; !ok {
				t.Errorf("%s names behaviour %s, which is not in behaviours.tsv", s.Metadata.Name, id)
			}
			shown[id] = append(shown[id], s.Metadata.Name)
		}
	}
	for id, reason := range without {
		if _, ok := table[id]; !ok {
			t.Errorf("uncovered.yaml names %s, which is not in behaviours.tsv", id)
		}
		if len(shown[id]) > 0 {
			t.Errorf("%s has the scenarios %v, and the reason %q in uncovered.yaml; want one of them", id, shown[id], reason)
		}
	}
	for id, behaviour := range table {
		if behaviour.Level == framework.May || behaviour.Tier == "T2" {
			continue
		}
		if len(shown[id]) == 0 && without[id] == "" {
			t.Errorf("%s (%s, %s) has no scenario and no reason in uncovered.yaml", id, behaviour.Level, behaviour.Tier)
		}
	}
}

// The level of a scenario is at most that of its behaviours.
func TestLevels(t *testing.T) {
	table, order := known(t), framework.Levels()
	for _, s := range catalogue(t) {
		for _, id := range s.Spec.Behaviours {
			if slices.Index(order, s.Spec.Level) < slices.Index(order, table[id].Level) {
				t.Errorf("%s is %s, but its behaviour %s is only %s", s.Metadata.Name, s.Spec.Level, id, table[id].Level)
			}
		}
	}
}

func TestSeveralOfEachArea(t *testing.T) {
	count := map[string]int{}
	for _, s := range catalogue(t) {
		seen := map[string]bool{}
		for _, id := range s.Spec.Behaviours {
			for _, areas := range several() {
				if slices.Contains(strings.Fields(areas), scenarios.Behaviour{ID: id}.Area()) && !seen[areas] {
					seen[areas] = true
					count[areas]++
				}
			}
		}
	}
	for _, areas := range several() {
		if count[areas] < 5 {
			t.Errorf("%s: %d scenarios, want at least 5", areas, count[areas])
		}
	}
}

// The name of a file is that of its scenario, and names of cluster-scoped objects are
// unique.
func TestNames(t *testing.T) {
	for _, s := range catalogue(t) {
		folder, rest, _ := strings.Cut(s.Metadata.Name, ".")
		if folder == "plugins" { // a folder for each plugin
			plugin, name, _ := strings.Cut(rest, ".")
			folder, rest = path.Join(folder, plugin), name
		}
		if want := path.Join(folder, rest+".yaml"); s.File != want {
			t.Errorf("%s is in %s, want %s", s.Metadata.Name, s.File, want)
		}
		if len(s.Spec.Behaviours) == 0 && s.Spec.Level != framework.May {
			t.Errorf("%s names no behaviour", s.Metadata.Name)
		}
		for _, manifest := range s.Spec.Given {
			kind, _ := manifest["kind"].(string)
			metadata, _ := manifest["metadata"].(map[string]any)
			name, _ := metadata["name"].(string)
			clusterScoped := slices.Contains([]string{"Namespace", "CustomResourceDefinition", "PriorityClass", "ClusterRole", "ClusterRoleBinding", "PersistentVolume", "Node", "StorageClass", "RuntimeClass"}, kind)
			if clusterScoped && !strings.Contains(name, "$(id)") && !strings.Contains(name, "$(run)") {
				t.Errorf("%s gives the cluster-scoped %s %q: its name needs $(id) or $(run)", s.Metadata.Name, kind, name)
			}
		}
	}
}
