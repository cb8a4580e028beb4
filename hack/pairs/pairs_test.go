package pairs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/suites/policy"
)

// least is how many of the 30 mistakes a comparison must find.
const least = 27

// compared is the result of one comparison. An empty seed is the faithful policy.
type compared struct {
	pair, seed string
	found      *policy.Comparison
	took       time.Duration
}

// webhookOf returns the webhook of a pair, with the samples of its PolicyTest.
func webhookOf(t *testing.T, name string, endpoint framework.Endpoint) policy.Subject {
	t.Helper()
	of := func(file string) string { return filepath.Join("testdata", name, file) }
	all, err := scenario.Load(scenario.LoadOptions{AnyInstalled: true}, of("samples.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	subject := policy.Subject{Policies: policy.Files(of("webhook.yaml")), Endpoints: map[string]framework.Endpoint{"pairs/guard": endpoint}}
	for _, each := range all {
		if contract := each.ContractOf(); contract != nil {
			samples, _ := policy.OfTest(contract)
			subject = subject.WithSamples(samples)
		}
	}
	return subject
}

// policyOf returns the policy of a pair with a mistake.
func policyOf(t *testing.T, name string, with seed) policy.Subject {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name, "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	changed, file := with.applied(string(text)), filepath.Join(t.TempDir(), "policy.yaml")
	if changed == "" {
		t.Fatalf("%s: %s: the policy does not have what is replaced", name, with.name)
	}
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	return policy.Subject{Policies: policy.Files(file)}
}

// TestPairs compares each webhook with its policy, and with each mistake in it.
func TestPairs(t *testing.T) {
	if os.Getenv("ADMISSIONTEST_PAIRS") == "" {
		t.Skip("ADMISSIONTEST_PAIRS is not set: make proof-compare starts 100 API servers")
	}
	endpoint := serve(t)
	var lock sync.Mutex
	var results []compared
	t.Run("compare", func(t *testing.T) {
		for _, p := range pairs() {
			for _, with := range append([]seed{{}, later()[p.name]}, p.seeds[:]...) {
				t.Run(p.name+"/"+with.name, func(t *testing.T) {
					t.Parallel()
					begun := time.Now()
					found, err := policy.Differences(t.Context(), webhookOf(t, p.name, endpoint), policyOf(t, p.name, with), "message", "code", "reason", "warnings")
					if err != nil {
						t.Fatal(err)
					}
					for _, each := range found.Differences {
						t.Log(each, each.Like)
					}
					t.Log(len(found.Unsteady), "unsteady", found.Unsteady, found.Compared)
					lock.Lock()
					defer lock.Unlock()
					results = append(results, compared{p.name, with.name, found, time.Since(begun)})
				})
			}
		}
	})
	judge(t, results)
}

// judge prints a line for each comparison, and fails if a faithful policy differs or too few mistakes were found.
func judge(t *testing.T, results []compared) {
	t.Helper()
	var table strings.Builder
	found, all, late, allLate := 0, 0, 0, 0
	for _, each := range results {
		n, said := len(each.found.Differences), "no difference"
		if n > 0 {
			said = fmt.Sprintf("%d kinds of difference, first: %s", n, each.found.Differences[0].What)
		}
		fmt.Fprintf(&table, "| %s | %s | %t | %d | %.0f s | %s |\n", each.pair, each.seed, n > 0, each.found.Sum(), each.took.Seconds(), said)
		switch {
		case each.seed == "" && (n > 0 || len(each.found.Unsteady) > 0):
			t.Errorf("%s: the faithful policy differs: %s", each.pair, said)
		case each.seed == "":
		case each.seed == later()[each.pair].name:
			allLate++
			late += min(n, 1)
		default:
			all++
			found += min(n, 1)
		}
	}
	t.Logf("\n| pair | mistake | found | requests | time | first |\n|---|---|---|---|---|---|\n%s\nfound %d of %d, and %d of %d later ones", &table, found, all, late, allLate)
	if all == 3*len(pairs()) && found < least {
		t.Errorf("found %d of %d mistakes, want %d", found, all, least)
	}
}
