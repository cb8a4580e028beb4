package flags

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// named returns scenarios with names from s000 on.
func named(count int) []scenario.Scenario {
	all := make([]scenario.Scenario, count)
	for i := range all {
		all[i].Metadata.Name = fmt.Sprintf("s%03d", i)
	}
	return all
}

func namesOf(scenarios []scenario.Scenario) []string {
	names := make([]string, 0, len(scenarios))
	for _, s := range scenarios {
		names = append(names, s.Metadata.Name)
	}
	return names
}

// Shards have each scenario once, whatever the order in which they were selected, and none is empty.
// They have equally many scenarios, or take equally long.
func TestDivide(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for range 300 {
		all := named(1 + random.Intn(60))
		count := 1 + random.Intn(len(all))
		seconds, most := map[string]float64{}, 0.0
		for _, s := range all {
			if random.Intn(2) == 0 {
				seconds[s.Metadata.Name] = random.ExpFloat64()
				most = max(most, seconds[s.Metadata.Name])
			}
		}
		for name, durations := range map[string]map[string]float64{"by count": nil, "by duration": seconds} {
			shards := divide(all, durations, count)
			shuffled := slices.Clone(all)
			random.Shuffle(len(all), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			again := divide(shuffled, durations, count)
			var names []string
			fewest, largest := len(all), 0
			for i, shard := range shards {
				names = append(names, namesOf(shard)...)
				fewest, largest = min(fewest, len(shard)), max(largest, len(shard))
				if diff := cmp.Diff(namesOf(shard), namesOf(again[i])); diff != "" {
					t.Fatalf("%s: shard %d depends on the order (-want +got):\n%s", name, i, diff)
				}
			}
			slices.Sort(names)
			if diff := cmp.Diff(namesOf(all), names); diff != "" || fewest == 0 {
				t.Fatalf("%s: the smallest of %d shards has %d scenarios, -want +got:\n%s", name, count, fewest, diff)
			}
			if durations == nil && largest-fewest > 1 {
				t.Errorf("the shards have from %d to %d scenarios", fewest, largest)
			}
		}
	}
	slow := map[string]float64{"s000": 9, "s001": 3, "s002": 3, "s003": 3}
	for i, want := range []string{"[s000]", "[s001 s002 s003]"} {
		if got := fmt.Sprint(namesOf(divide(named(4), slow, 2)[i])); got != want {
			t.Errorf("shard %d: got %s, want %s", i, got, want)
		}
	}
}
