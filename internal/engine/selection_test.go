package engine_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
)

func catalogue() []scenario.Scenario {
	one := func(area, name string, level framework.Level) scenario.Scenario {
		return scenario.Scenario{Area: area, Metadata: scenario.Metadata{Name: name}, Spec: scenario.Spec{Level: level}}
	}
	return []scenario.Scenario{
		one("order", "order.by-name", framework.Must),
		one("order", "order.mutating-first", framework.Should),
		one("wire", "wire.tls.version", framework.Must),
	}
}

func TestSelect(t *testing.T) {
	should := engine.Filter{Levels: []framework.Level{framework.Should}}
	tests := map[string]struct {
		args   []string
		filter engine.Filter
		want   []string
	}{
		"no argument":       {want: []string{"order.by-name", "order.mutating-first", "wire.tls.version"}},
		"a name":            {args: []string{"order.by-name"}, want: []string{"order.by-name"}},
		"an area":           {args: []string{"order"}, want: []string{"order.by-name", "order.mutating-first"}},
		"a star over dots":  {args: []string{"w*version"}, want: []string{"wire.tls.version"}},
		"order of the list": {args: []string{"wire", "order.by-name", "wire"}, want: []string{"order.by-name", "wire.tls.version"}},
		"a level":           {filter: should, want: []string{"order.mutating-first"}},
		"a level of some":   {args: []string{"order"}, filter: should, want: []string{"order.mutating-first"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			selected, err := engine.Select(catalogue(), test.args, test.filter)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range selected {
				got = append(got, s.Metadata.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSelectRefuses(t *testing.T) {
	tests := map[string]struct {
		args   []string
		levels []framework.Level
		all    []scenario.Scenario
		is     error
		says   string
	}{
		"a misspelt name":      {args: []string{"order.by-nane"}, all: catalogue(), is: engine.ErrUnknownName, says: `did you mean "order.by-name"?`},
		"a misspelt area":      {args: []string{"wier"}, all: catalogue(), is: engine.ErrUnknownName, says: `did you mean "wire"?`},
		"nothing near":         {args: []string{"zebra"}, all: catalogue(), is: engine.ErrUnknownName, says: `select "zebra"`},
		"an empty name":        {args: []string{""}, all: []scenario.Scenario{{}}, is: engine.ErrUnknownName, says: `select ""`},
		"a malformed pattern":  {args: []string{"order.["}, all: catalogue(), is: engine.ErrUnknownName, says: "malformed"},
		"a pattern for none":   {args: []string{"order", "x*"}, all: catalogue(), is: engine.ErrNothingSelected, says: `select "x*"`},
		"a level that none is": {args: []string{"wire"}, levels: []framework.Level{framework.May, framework.Should}, all: catalogue(), is: engine.ErrNothingSelected, says: "none of 3 scenarios called wire has a level of [MAY SHOULD]"},
		"an empty catalogue":   {is: engine.ErrNothingSelected, says: "none of 0 scenarios"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			selected, err := engine.Select(test.all, test.args, engine.Filter{Levels: test.levels})
			if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) || selected != nil {
				t.Errorf("Select = %d scenarios, %v; want %v that says %s", len(selected), err, test.is, test.says)
			}
		})
	}
	_, err := engine.Select(catalogue(), []string{"wier", "ordr"}, engine.Filter{})
	if err == nil || !strings.Contains(err.Error(), `"wire"`) || !strings.Contains(err.Error(), `"order"`) {
		t.Errorf("Select reports only one misspelt name: %v", err)
	}
}

// guarded is a scenario for a webhook under test.
const guarded = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: mine.guarded}
spec:
  level: MUST
  requirement: A requirement.
  source: [https://example.com]
  given:
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingWebhookConfiguration
      metadata: {name: guard}
      webhooks:
        - name: guard.example.com
          clientConfig: {service: {namespace: guard-system, name: guard, path: /validate}}
          rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [secrets]}]
  when:
    - create: {apiVersion: v1, kind: Secret, metadata: {name: a}}
      then: {code: 400, message: not by the guard}
`

// A webhook under test that does not answer ends the run before any step. The error has
// its address and the reason.
func TestWebhookUnderTest(t *testing.T) {
	guard := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || r.URL.Path != "/validate" {
			http.NotFound(w, r)
			return
		}
		request, _ := review["request"].(map[string]any)
		review["response"] = map[string]any{"uid": request["uid"], "allowed": false, "status": map[string]any{"message": "not by the guard"}}
		_ = json.NewEncoder(w).Encode(review)
	}))
	guard.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it disconnect
	guard.StartTLS()
	defer guard.Close()
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: guard.Certificate().Raw})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closedAddress := "https://" + closed.Addr().String()
	_ = closed.Close()
	const (
		who = `wait for the webhook under test: guard-system/guard, called at https://127\.0\.0\.1:\d+/validate, does not answer within \d+s: `
		do  = `; start it before the run, at the address that --endpoint gives, with a certificate that is valid for the host that is called and signed by the caBundle ` +
			`or by --endpoint-ca guard-system/guard=FILE; a PROGRAM can use the one in {cert-dir}`
	)
	for name, test := range map[string]struct {
		endpoint framework.Endpoint
		want     string // "" is a pass
	}{
		"answers":     {framework.Endpoint{URL: guard.URL, CABundle: bundle}, ""},
		"refused":     {framework.Endpoint{URL: closedAddress, CABundle: bundle}, who + `dial tcp 127\.0\.0\.1:\d+: connect: connection refused` + do},
		"not trusted": {framework.Endpoint{URL: guard.URL}, who + `tls: failed to verify certificate: x509: .*` + do},
		"no Service": {framework.Endpoint{CABundle: bundle},
			`call the webhook under test: Service guard-system/guard: an API server on this machine cannot call Services: give the URL of one that runs elsewhere with --endpoint guard-system/guard=URL`},
	} {
		t.Run(name, func(t *testing.T) {
			scenarios, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"one.yaml": {Data: []byte(guarded)}}})
			if err != nil {
				t.Fatal(err)
			}
			patience := time.Duration(0)
			if test.want != "" {
				patience = time.Second
			}
			got, err := engine.Run(t.Context(), engine.Options{
				Patience: patience, Scenarios: scenarios, Provider: providers.NewEnvtest(providers.EnvtestOptions{}),
				Endpoints: map[string]framework.Endpoint{"guard-system/guard": test.endpoint},
			})
			if test.want == "" {
				if err != nil || got.Outcomes[0].Verdict != framework.Pass {
					t.Errorf("got %v, %+v; want a pass", err, got.Outcomes)
				}
				return
			}
			if err == nil || !regexp.MustCompile("^"+test.want+"$").MatchString(err.Error()) {
				t.Errorf("got\n%v\nwant\n%s", err, test.want)
			}
			if errors.Is(err, framework.ErrTimeout) || got.Outcomes[0].Verdict != framework.Errored {
				t.Errorf("verdict %s, error %v; want an error that is not inconclusive", got.Outcomes[0].Verdict, err)
			}
		})
	}
}

func TestCheckEndpoints(t *testing.T) {
	scenarios, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"one.yaml": {Data: []byte(guarded)}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"guard-system/guard": "",
		"guard-system/gaurd": `use endpoint of Service guard-system/gaurd: the endpoint cannot be used: no selected scenario has a webhook of that Service; did you mean "guard-system/guard"?`,
		"x/y":                "use endpoint of Service x/y: the endpoint cannot be used: no selected scenario has a webhook of that Service; available: [\"guard-system/guard\"]",
	} {
		t.Run(name, func(t *testing.T) {
			err := engine.CheckEndpoints(scenarios, map[string]framework.Endpoint{name: {}})
			if want == "" && err != nil || want != "" && (err == nil || err.Error() != want || !errors.Is(err, engine.ErrBadEndpoint)) {
				t.Errorf("got\n%v\nwant\n%s", err, want)
			}
		})
	}
}
