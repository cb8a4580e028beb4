package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// givenGuard is the given part of a scenario for a webhook under test.
const givenGuard = `  given:
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingWebhookConfiguration
      metadata: {name: guard}
      webhooks: [{name: guard.example.com, clientConfig: {service: {namespace: guard-system, name: guard}}}]
  when:
`

// A usage error ends with exitUsage, prints one line for each problem on standard error,
// and nothing on standard output.
func TestUsageErrors(t *testing.T) {
	good := scenarioFile("user.fine", "MUST", "fine")
	dir := write(t, map[string]string{
		"misspelt.yaml":  strings.Replace(good, "level:", "levle:", 1),
		"type.yaml":      strings.Replace(good, "level: MUST", "level: [MUST]", 1),
		"empty.yaml":     "",
		"good.yaml":      good,
		"guard.yaml":     strings.Replace(good, "  when:\n", givenGuard, 1),
		"twice/a.yaml":   good,
		"twice/b.yaml":   good,
		"same.yaml":      scenarioFile("order.by-name", "MUST", "fine"),
		"fault.yaml":     good + "  given: [{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: a.example.com}]}]\n  hooks: {a.example.com: {fault: http-405}}\n",
		"list/huge.yaml": "kind: Scenario\n" + strings.Repeat("#", 50<<20),
	})
	if err := os.Symlink(dir, filepath.Join(dir, "list", "loop")); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	tests := map[string]struct {
		args []string
		says []string
	}{
		"unknown command":       {[]string{"lst"}, []string{`unknown command "lst"`, `did you mean "list"?`}},
		"command with flags":    {[]string{"lst", "--wide"}, []string{`did you mean "list"?`}},
		"unknown subcommand":    {[]string{"assets", "biuld"}, []string{`did you mean "build"?`}},
		"unknown help topic":    {[]string{"help", "rn"}, []string{`did you mean "run"?`}},
		"unknown shell":         {[]string{"completion", "zssh"}, []string{`did you mean "zsh"?`}},
		"unknown flag":          {[]string{"run", "--levl", "MUST"}, []string{"unknown flag: --levl", "did you mean --level?"}},
		"unknown flag at root":  {[]string{"--bogus"}, []string{"unknown flag: --bogus"}},
		"unknown short flag":    {[]string{"run", "-z"}, []string{"'z' in -z", "run --help"}},
		"flag without value":    {[]string{"run", "--level"}, []string{"needs an argument"}},
		"flag of wrong type":    {[]string{"run", "--parallel", "many"}, []string{"--parallel"}},
		"no patience":           {[]string{"run", "--patience", "0s"}, []string{"--patience 0s: want more than 0"}},
		"no scenario at a time": {[]string{"run", "--parallel", "0"}, []string{"--parallel 0: want a number from 1"}},
		"negative mutants":      {[]string{"run", "--mutants=-1"}, []string{"--mutants -1: want a number from 0"}},
		"mutants apart":         {[]string{"run", "--mutants", "30"}, []string{`"30" is no scenario; write --mutants=30`}},
		"mutants of a shard":    {[]string{"run", "--mutants", "--shard", "1/2"}, []string{"--mutants cannot be combined with --shard or --watch"}},
		"mutants of nothing":    {[]string{"run", in("good.yaml"), "--mutants"}, []string{"about the policies of PolicyTests, and none is selected"}},
		"unknown level":         {[]string{"run", "--level", "MUTS"}, []string{`--level "MUTS"`, `did you mean "MUST"?`}},
		"unknown output":        {[]string{"run", "-o", "jsno"}, []string{`did you mean "json"?`}},
		"output of list":        {[]string{"list", "-o", "yaml"}, []string{"want text or json"}},
		"output of assets":      {[]string{"assets", "list", "-o", "yaml"}, []string{"want text or json"}},
		"output of version":     {[]string{"version", "-o", "yaml"}, []string{"want text or json"}},
		"rbac account":          {[]string{"rbac", "--aggregated", "--account", "A B"}, []string{`--account "A B"`}},
		"rbac namespace":        {[]string{"rbac", "--aggregated", "--namespace", "a.b"}, []string{`--namespace "a.b"`}},
		"unknown target":        {[]string{"run", "--target", "envtset"}, []string{`did you mean "envtest"?`}},
		"no image of a version": {[]string{"run", "--target", "kind", "--k8s-version", "1.36"}, []string{`--k8s-version "1.36": want a version like`}},
		"transport of envtest":  {[]string{"run", "--transport", "url"}, []string{"--transport cannot be combined with --target envtest"}},
		"misspelt transport":    {[]string{"run", "--kubeconfig", "x", "--transport", "servise"}, []string{`did you mean "service"?`}},
		"address of a service":  {[]string{"run", "--kubeconfig", "x", "--transport", "service", "--hook-address", "h"}, []string{"--hook-address cannot be combined with --transport service"}},
		"image without a pod":   {[]string{"run", "--kubeconfig", "x", "--transport", "url", "--hook-image", "i"}, []string{"--hook-image cannot be combined with --transport url"}},
		"odd hook address":      {[]string{"run", "--kubeconfig", "x", "--hook-address", "h:x"}, []string{`--hook-address "h:x": port "x"`}},
		"unspecified address":   {[]string{"run", "--kubeconfig", "x", "--hook-address", "0.0.0.0:1"}, []string{"want the address that the API server calls"}},
		"two targets":           {[]string{"run", "--target", "envtest", "--kubeconfig", "x", "--context", "y"}, []string{"--kubeconfig and --context cannot be combined with --target envtest"}},
		"version of a cluster":  {[]string{"run", "--kubeconfig", "x", "--k8s-version", "1.36.3"}, []string{"--k8s-version cannot be combined with a kubeconfig"}},
		"empty kubeconfig":      {[]string{"run", "--kubeconfig", ""}, []string{"--kubeconfig is empty"}},
		"old version":           {[]string{"run", "--k8s-version", "1.20.0"}, []string{"not supported; the first one is 1.34.0"}},
		"old version to build":  {[]string{"assets", "build", "--k8s-version", "1.20.0"}, []string{"not supported; the first one is 1.34.0"}},
		"not a version":         {[]string{"run", "--k8s-version", "new"}, []string{`"new"`, "like 1.36.3"}},
		"assets, not a version": {[]string{"assets", "path", "--k8s-version", "latest"}, []string{"a version like 1.36.3"}},
		"unknown name":          {[]string{"run", "order.by-nane"}, []string{`did you mean "order.by-name"?`}},
		"two unknown names":     {[]string{"run", "ordr", "wier"}, []string{"admissiontest: select \"ordr\"", "\nadmissiontest: select \"wier\""}},
		"unknown name to list":  {[]string{"list", "ordr"}, []string{`did you mean "order"?`}},
		"unknown to explain":    {[]string{"explain", "ordr"}, []string{`did you mean "order"?`}},
		"nothing to explain":    {[]string{"explain"}, []string{"want the name or file of a scenario"}},
		"malformed pattern":     {[]string{"run", "["}, []string{"malformed"}},
		"unknown skip":          {[]string{"run", "--skip", "ordr"}, []string{"--skip:", `did you mean "order"?`}},
		"skip that hits none":   {[]string{"run", "--skip", "x*"}, []string{"--skip:", "matches none of 3"}},
		"missing file":          {[]string{"run", in("none.yaml")}, []string{"none.yaml", "no such file"}},
		"misspelt field":        {[]string{"run", in("misspelt.yaml")}, []string{"misspelt.yaml:5:3:", `did you mean "level"?`}},
		"wrong type":            {[]string{"run", in("type.yaml")}, []string{"type.yaml:5:10:"}},
		"empty file":            {[]string{"run", in("empty.yaml")}, []string{"empty.yaml"}},
		"duplicate name":        {[]string{"run", in("twice")}, []string{"twice/b.yaml:3:", "twice/a.yaml:3:"}},
		"name of the catalogue": {[]string{"run", "order", in("same.yaml")}, []string{`"order.by-name" is selected twice`}},
		"unknown fault":         {[]string{"run", in("fault.yaml")}, []string{"fault.yaml:15:", "http-405", `did you mean`}},
		"huge file, and loop":   {[]string{"run", in("list")}, []string{"huge.yaml", "loop"}},
		"report on a file":      {[]string{"run", in("good.yaml"), "--report", in("empty.yaml")}, []string{"--report:"}},
		"unused endpoint":       {[]string{"run", "--endpoint", "a/b=https://h"}, []string{"use endpoint of Service a/b", "no selected scenario has a webhook of that Service; no clientConfig.service names a Service"}},
		"misspelt endpoint":     {[]string{"run", in("guard.yaml"), "--endpoint", "guard-system/gaurd=https://h"}, []string{`did you mean "guard-system/guard"?`}},
		"http endpoint":         {[]string{"run", in("guard.yaml"), "--endpoint", "guard-system/guard=http://h"}, []string{`"http://h" is not an https URL`, "want https://HOST:PORT"}},
		"endpoint without =":    {[]string{"run", "--endpoint", "guard=https://h"}, []string{`--endpoint "guard=https://h": want NAMESPACE/NAME=https://HOST:PORT`}},
		"endpoint given twice":  {[]string{"run", "--endpoint", "a/b=https://h", "--endpoint", "a/b=https://g"}, []string{"--endpoint a/b is given twice"}},
		"missing endpoint CA":   {[]string{"run", in("guard.yaml"), "--endpoint-ca", "guard-system/guard=none.crt"}, []string{"--endpoint-ca guard-system/guard:", "no such file"}},
		"endpoint CA, no PEM":   {[]string{"run", in("guard.yaml"), "--endpoint-ca", "guard-system/guard=" + in("guard.yaml")}, []string{"the CA bundle has no certificate"}},
		"empty endpoint CA":     {[]string{"run", in("guard.yaml"), "--endpoint-ca", "guard-system/guard=" + in("empty.yaml")}, []string{"is empty; want certificates in PEM"}},
		"endpoint CA without =": {[]string{"run", "--endpoint-ca", "a/b"}, []string{`--endpoint-ca "a/b": want NAMESPACE/NAME=FILE`}},
		"argument to version":   {[]string{"version", "x"}, []string{"takes no arguments; got x"}},
		"argument to cleanup":   {[]string{"cleanup", "x"}, []string{"takes no arguments; got x"}},
		"cleanup of envtest":    {[]string{"cleanup", "--target", "envtest"}, []string{`--target "envtest": want kubeconfig or kind`}},
		"cleanup of a run here": {[]string{"cleanup", "--target", "kind", "--run", "x"}, []string{"--run cannot be combined with --target kind"}},
		"odd run":               {[]string{"cleanup", "--run", "a,b"}, []string{`--run "a,b"`}},
		"empty run":             {[]string{"cleanup", "--run", "at-"}, []string{`--run "at-"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := execute(t.Context(), nil, test.args...)
			got.check(t, exitUsage, test.says...)
			if got.stdout != "" {
				t.Errorf("standard output = %q; want nothing", got.stdout)
			}
			if !strings.HasPrefix(got.stderr, "admissiontest: ") && name != "not a version" && name != "old version" && name != "huge file, and loop" { // these print notes before
				t.Errorf("standard error begins with %.40q", got.stderr)
			}
		})
	}
}

func TestNothingSelected(t *testing.T) {
	empty := t.TempDir()
	for name, args := range map[string][]string{
		"a pattern":        {"run", "x*"},
		"a level":          {"run", "order", "--level", "MAY"},
		"an empty folder":  {"run", empty + "/"},
		"beside something": {"run", "order", "x*"},
		"in a list":        {"list", "--level", "MAY", "order"},
	} {
		t.Run(name, func(t *testing.T) {
			execute(t.Context(), nil, args...).check(t, exitNothing, "admissiontest: ", "nothing selected")
		})
	}
}

// If the machine lacks a server, binaries or a kubeconfig, the exit code is
// exitInfrastructure.
func TestInfrastructure(t *testing.T) {
	dir := write(t, map[string]string{
		"malformed": "a: [b", "kube-apiserver": "#!/bin/sh\n", "etcd": "",
		"dead": "{current-context: c, contexts: [{name: c, context: {cluster: d}}], clusters: [{name: d, cluster: {server: 'http://127.0.0.1:1'}}]}",
	})
	for name, test := range map[string]struct{ args, says []string }{
		"missing kubeconfig":   {[]string{"run", "--kubeconfig", dir + "/none"}, []string{"the file does not exist", "/none"}},
		"malformed kubeconfig": {[]string{"run", "--kubeconfig", dir + "/malformed"}, []string{"malformed"}},
		"no such context":      {[]string{"run", "--kubeconfig", dir + "/dead", "--context", "x"}, []string{`no context "x"`}},
		"dead server":          {[]string{"run", "--kubeconfig", dir + "/dead"}, []string{"connection refused", "http://127.0.0.1:1"}},
		"cleanup of dead":      {[]string{"cleanup", "--kubeconfig", dir + "/dead"}, []string{"connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t.Context(), nil, test.args...)
			got.check(t, exitInfrastructure, append(test.says, "admissiontest: ")...)
			if got.stdout != "" {
				t.Errorf("standard output = %q; want nothing", got.stdout)
			}
		})
	}
}
