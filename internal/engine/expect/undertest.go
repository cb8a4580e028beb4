package expect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
)

// WebhookUnderTest is a webhook whose clientConfig does not lead to a Hook: it names a Service outside of
// the scenario's namespaces, or has a URL. Its configuration can be given, installed, written by a step
// that is no dry run, or be in a file of the API server.
type WebhookUnderTest struct {
	// Name is the name of the webhook. It is empty for a conversion webhook, and for a Direct one if it
	// is not known which webhook it is.
	Name string
	// Service is NAMESPACE/NAME of the Service, HostPort is HOST:PORT of the URL. A Direct one can have
	// neither.
	Service, HostPort string
	// Direct is true if the API server calls the address itself, whatever Endpoints there are: a request
	// or a file of the API server has the clientConfig.
	Direct bool
}

// WebhookAddresses returns the Services of the webhooks under test as sorted NAMESPACE/NAME, and the
// hosts in the URLs of others as sorted HOST:PORT. The manifests are installed for all scenarios.
func WebhookAddresses(scenarios []scenario.Scenario, manifests ...map[string]any) (services, hosts []string) {
	all := webhooksIn(manifests)
	for _, one := range scenario.Cases(scenarios) {
		all = append(all, WebhooksUnderTest(one)...)
	}
	byService, byHost := map[string]bool{}, map[string]bool{}
	for _, one := range all {
		byService[one.Service], byHost[one.HostPort] = true, true
	}
	delete(byService, "")
	delete(byHost, "")
	return slices.Sorted(maps.Keys(byService)), slices.Sorted(maps.Keys(byHost))
}

// webhooksIn returns the webhooks under test in manifests.
func webhooksIn(manifests []map[string]any) []WebhookUnderTest {
	w := finder{}
	for _, manifest := range manifests {
		w.add(manifest, false)
	}
	return w.found
}

// WebhooksUnderTest returns the webhooks under test of a scenario.
func WebhooksUnderTest(s scenario.Scenario) []WebhookUnderTest {
	w := finder{elsewhere: servicesElsewhere(s)}
	for _, manifest := range s.Spec.Given[:len(s.Spec.Given)-s.Existing] {
		w.add(manifest, false)
	}
	eachStep(s, func(step scenario.Step) {
		for _, manifest := range step.Install {
			w.add(manifest, false)
		}
		w.addRequest(step)
		if step.Files != nil {
			w.addFiles(step.Files.Write)
		}
	})
	if s.Spec.Server != nil {
		w.addFiles(s.Spec.Server.Files)
	}
	return w.found
}

const admissionGroup = "admissionregistration.k8s.io"

// finder collects webhooks under test.
type finder struct {
	found []WebhookUnderTest
	// elsewhere says of the Services of type ExternalName, by name, whether they lead to another host
	// than that of the Hooks.
	elsewhere map[string]bool
}

// servicesElsewhere returns finder.elsewhere for a scenario.
func servicesElsewhere(s scenario.Scenario) map[string]bool {
	found := map[string]bool{}
	add := func(manifest map[string]any) {
		name, _, _ := unstructured.NestedString(manifest, "metadata", "name")
		host, external, _ := unstructured.NestedString(manifest, "spec", "externalName")
		if manifest["kind"] == "Service" && external {
			found[name] = found[name] || host != "$(hooks.host)"
		}
	}
	for _, manifest := range s.Spec.Given {
		add(manifest)
	}
	eachStep(s, func(step scenario.Step) {
		for _, manifest := range append([]map[string]any{step.Create, step.Update, step.Apply}, step.Install...) {
			add(manifest)
		}
	})
	return found
}

// add adds the webhooks of a manifest. Direct is as in WebhookUnderTest.
func (w *finder) add(manifest map[string]any, direct bool) {
	items, _ := manifest["webhooks"].([]any)
	if manifest["kind"] == "CustomResourceDefinition" {
		conversion, _, _ := unstructured.NestedFieldNoCopy(manifest, "spec", "conversion", "webhook")
		if one, ok := w.of(conversion); ok && one.Service != "" {
			w.found = append(w.found, one)
		}
		return
	}
	if apiVersion, _ := manifest["apiVersion"].(string); apiVersion != "" && !strings.HasPrefix(apiVersion, admissionGroup+"/") {
		return
	}
	for _, item := range items {
		if one, ok := w.of(item); ok {
			one.Direct = one.Direct || direct
			w.found = append(w.found, one)
		}
	}
}

// of returns a webhook, and whether it is one under test.
func (w *finder) of(item any) (one WebhookUnderTest, ok bool) {
	webhook, _ := item.(map[string]any)
	one.Name, _ = webhook["name"].(string)
	client, _ := webhook["clientConfig"].(map[string]any)
	service, byService := client["service"].(map[string]any)
	if !byService {
		address, _ := client["url"].(string)
		one.HostPort = hostPort(address)
		return one, one.HostPort != ""
	}
	namespace, _ := service["namespace"].(string)
	name, _ := service["name"].(string)
	if one.Service = serviceName(namespace, name); one.Service != "" {
		return one, true
	}
	elsewhere, external := w.elsewhere[name]
	port, hasPort := service["port"]
	one.Direct = external && (elsewhere || hasPort && port != "$(hooks.port)")
	return one, one.Direct
}

// addRequest adds the webhooks that the request of a step writes. A dry run and a request that must be
// refused write none.
func (w *finder) addRequest(step scenario.Step) {
	if step.DryRun || refused(step.Then) {
		return
	}
	written := []map[string]any{step.Create, step.Update, step.Apply}
	var raw any
	if step.Patch != nil && strings.HasPrefix(step.Patch.APIVersion, admissionGroup+"/") {
		written = append(written, step.Patch.Merge, step.Patch.Strategic)
		raw = step.Patch.JSON
	}
	for _, manifest := range written {
		w.add(manifest, true)
		if apiVersion, _ := manifest["apiVersion"].(string); step.Body != nil && strings.HasPrefix(apiVersion, admissionGroup+"/") {
			raw = *step.Body
		}
	}
	if text, err := json.Marshal(raw); err == nil && strings.Contains(string(text), "clientConfig") && !strings.Contains(string(text), "$(hooks.") {
		w.found = append(w.found, WebhookUnderTest{Direct: true})
	}
}

// eachStep calls a function for each step, also for steps in other steps and of webhooks.
func eachStep(s scenario.Scenario, do func(scenario.Step)) {
	s.HasStep(func(step scenario.Step) bool {
		do(step)
		return false
	})
}

// refused reports whether a request must be refused.
func refused(e *scenario.Expectation) bool {
	if e == nil {
		return false
	}
	codes := len(e.Code) > 0 && !slices.ContainsFunc(e.Code, func(code int) bool { return code < http.StatusBadRequest })
	return codes || e.RefusedBy != nil || e.Allowed != nil && !*e.Allowed
}

// urlInFile matches the URL of a clientConfig in a file of the API server.
var urlInFile = regexp.MustCompile(`\burl["']?\s*:\s*["']?([^\s"',}]+)`)

// addFiles adds the webhooks in files of the API server: in those with static webhook configurations.
func (w *finder) addFiles(files map[string]string) {
	for _, content := range files {
		if !strings.Contains(content, "WebhookConfiguration") {
			continue
		}
		for _, found := range urlInFile.FindAllStringSubmatch(content, -1) {
			if hostPort(found[1]) != "" {
				w.found = append(w.found, WebhookUnderTest{Direct: true})
			}
		}
	}
}

// serviceName returns NAMESPACE/NAME for the Service of a webhook under test, and "" for a Service of
// the scenario itself, whose namespace is a placeholder.
func serviceName(namespace, name string) string {
	if namespace == "" || name == "" || strings.Contains(namespace, "$(") {
		return ""
	}
	return namespace + "/" + name
}

// hookURL matches the URL of a Hook in a clientConfig, before its placeholders are replaced.
var hookURL = regexp.MustCompile(`(?i)^https://(\$\(hooks\.host\)(:\$\(hooks\.port\))?|(localhost|127\.0\.0\.1):\$\(hooks\.port\))(/|$)`)

// hostPort returns HOST:PORT for the URL of a webhook under test. It returns "" for the URL of a Hook, for
// what is not an https URL, and for a host in the domain invalid, which does not exist (RFC 6761).
func hostPort(address string) string {
	parsed, err := url.Parse(strings.ReplaceAll(address, ":$(hooks.port)", ":1"))
	if err != nil || parsed.Scheme != "https" || parsed.Hostname() == "" || hookURL.MatchString(address) ||
		strings.HasSuffix(strings.ToLower(strings.TrimSuffix(parsed.Hostname(), ".")), ".invalid") {
		return ""
	}
	port := parsed.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(strings.ToLower(parsed.Hostname()), port)
}

// Unseen has the webhooks under test of a scenario whose calls are not seen, by name, with NAMESPACE/NAME
// of the Service that the API server calls without a Hook; "" if an Endpoint would not change that. Calls of
// the others go through a Hook, which records them. Nil has none.
type Unseen map[string]string

// UnseenOptions say which calls go through a Hook.
type UnseenOptions struct {
	// Endpoints are the Endpoints by NAMESPACE/NAME of a Service.
	Endpoints map[string]framework.Endpoint
	// Installed are the manifests that are installed for all scenarios.
	Installed []map[string]any
	// URLs is true if calls of a URL go through a Hook: see apiserver.Options.Credentials.
	URLs bool
}

// UnseenOf returns the webhooks under test of a scenario, and of what is installed for all scenarios, that are
// called without a Hook. It ignores those that a request or a file configures if no step expects calls.
func UnseenOf(s scenario.Scenario, options UnseenOptions) Unseen {
	found := Unseen{}
	expects := s.ExpectsCalls()
	for _, one := range append(webhooksIn(options.Installed), WebhooksUnderTest(s)...) {
		switch {
		case one.Direct && expects:
			found[cmp.Or(one.Name, "any webhook")] = ""
		case one.Direct || one.Name == "": // or a conversion webhook
		case one.Service != "" && options.Endpoints[one.Service].URL == "":
			found[one.Name] = one.Service
		case one.HostPort != "" && !options.URLs:
			found[one.Name] = ""
		}
	}
	return found
}

// String says what is not seen, and why.
func (u Unseen) String() string {
	var all []string
	for _, one := range u.Report() {
		all = append(all, one.String())
	}
	return strings.Join(all, "; ")
}

// Report returns the webhooks for a report.
func (u Unseen) Report() []report.NotSeen {
	names := map[string][]string{}
	for name, service := range u {
		names[service] = append(names[service], name)
	}
	var all []report.NotSeen
	for service, of := range names {
		slices.Sort(of)
		all = append(all, report.NotSeen{Webhooks: of, Service: service})
	}
	slices.SortFunc(all, func(a, b report.NotSeen) int { return strings.Compare(a.Webhooks[0], b.Webhooks[0]) })
	return all
}

// Unusable returns why the scenario cannot run, or "": it has a script for a webhook that the API
// server calls without a Hook.
func (u Unseen) Unusable(s scenario.Scenario) string {
	names := slices.Collect(maps.Keys(s.Spec.Hooks))
	for _, step := range s.Spec.When {
		names = append(names, scriptedBy(step)...)
	}
	slices.Sort(names)
	for _, name := range names {
		service, is := u[name]
		switch {
		case service != "":
			return fmt.Sprintf("the scenario has a script for webhook %s, but the API server calls this webhook through Service %s, without a Hook: give the URL of the webhook with --endpoint %s=URL", name, service, service)
		case is:
			return fmt.Sprintf("the scenario has a script for webhook %s, but the API server calls this webhook without a Hook: give its configuration in given or install, with a Service that has an --endpoint", name)
		}
	}
	return ""
}

// Undecidable returns why the scenario, which can run, would show nothing, or "": a step expects or uses calls of webhooks,
// and not all calls are seen.
func (u Unseen) Undecidable(s scenario.Scenario) string {
	if len(u) == 0 || !s.ExpectsCalls() {
		return ""
	}
	return "admissiontest cannot check the expected calls: " + u.String()
}

// scriptedBy returns the names of the webhooks for which a step sets a script.
func scriptedBy(step scenario.Step) []string {
	names := slices.Collect(maps.Keys(step.Script))
	for _, inner := range step.Parallel {
		names = append(names, scriptedBy(inner)...)
	}
	return names
}
