package expect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
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
// the scenario's namespaces, or has a URL. Its configuration can be given or installed.
type WebhookUnderTest struct {
	// Name is the name of the webhook. It is empty for a conversion webhook.
	Name string
	// Service is NAMESPACE/NAME of the Service, HostPort is HOST:PORT of the URL. One that is called through a Service
	// of the scenario has neither.
	Service, HostPort string
}

// WebhookAddresses returns the Services of the webhooks under test as sorted NAMESPACE/NAME, and the
// hosts in the URLs of others as sorted HOST:PORT. The manifests are installed for all scenarios.
func WebhookAddresses(scenarios []scenario.Scenario, manifests ...map[string]any) (services, hosts []string) {
	all := external{}.webhooksIn(manifests)
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

// WebhooksUnderTest returns the webhooks under test of a scenario.
func WebhooksUnderTest(s scenario.Scenario) []WebhookUnderTest {
	manifests := slices.Clone(s.Spec.Given[:len(s.Spec.Given)-s.Existing])
	s.HasStep(func(step scenario.Step) bool {
		manifests = append(manifests, step.Install...)
		return false
	})
	return externalOf(s).webhooksIn(manifests)
}

const admissionGroup = "admissionregistration.k8s.io"

// external has the Services of type ExternalName of a scenario, by name, and whether they lead to another host than that
// of the Hooks.
type external map[string]bool

func externalOf(s scenario.Scenario) external {
	manifests, found := slices.Clone(s.Spec.Given), external{}
	s.HasStep(func(step scenario.Step) bool {
		manifests = append(append(manifests, step.Install...), step.Create, step.Update, step.Apply)
		return false
	})
	for _, manifest := range manifests {
		name, _, _ := unstructured.NestedString(manifest, "metadata", "name")
		if host, is, _ := unstructured.NestedString(manifest, "spec", "externalName"); is {
			found[name] = found[name] || host != "$(hooks.host)"
		}
	}
	return found
}

func jsonOf(value any) string {
	text, _ := json.Marshal(value) // it was decoded from a file
	return string(text)
}

// webhooksIn returns the webhooks under test in manifests.
func (e external) webhooksIn(manifests []map[string]any) (all []WebhookUnderTest) {
	for _, manifest := range manifests {
		items, _ := manifest["webhooks"].([]any)
		apiVersion, _ := manifest["apiVersion"].(string)
		if manifest["kind"] == "CustomResourceDefinition" {
			conversion, _, _ := unstructured.NestedFieldNoCopy(manifest, "spec", "conversion", "webhook")
			if one, ok := e.underTest(conversion); ok && one.Service != "" {
				all = append(all, one)
			}
		} else if apiVersion == "" || strings.HasPrefix(apiVersion, admissionGroup+"/") {
			for _, item := range items {
				if one, ok := e.underTest(item); ok {
					all = append(all, one)
				}
			}
		}
	}
	return all
}

// underTest returns a webhook, and whether it is one under test.
func (e external) underTest(item any) (one WebhookUnderTest, ok bool) {
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
	one.Service = serviceName(namespace, name)
	port, hasPort := service["port"]
	elsewhere, isExternal := e[name]
	return one, one.Service != "" || isExternal && (elsewhere || hasPort && port != "$(hooks.port)")
}

// configures reports whether a request of a step, or a file of the API server, configures a webhook that the API server
// calls itself, whatever Endpoints there are: one of its clientConfigs has not the URL of a Hook.
func configures(s scenario.Scenario) bool {
	unseen := func(text string) bool {
		return strings.Count(text, "clientConfig") > len(hookOrNone.FindAllString(text, -1))
	}
	inFiles := func(files map[string]string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(files)), func(content string) bool {
			return strings.Contains(content, "WebhookConfiguration") && unseen(content)
		})
	}
	return s.Spec.Server != nil && inFiles(s.Spec.Server.Files) || s.HasStep(func(step scenario.Step) bool {
		if step.Files != nil && inFiles(step.Files.Write) {
			return true
		}
		text := jsonOf([]any{step.Create, step.Update, step.Apply, step.Patch, step.Body})
		return !step.DryRun && strings.Contains(text, admissionGroup) && unseen(text)
	})
}

// serviceName returns NAMESPACE/NAME for the Service of a webhook under test, and "" for a Service of
// the scenario itself, whose namespace is a placeholder.
func serviceName(namespace, name string) string {
	if namespace == "" || name == "" || strings.Contains(namespace, "$(") {
		return ""
	}
	return namespace + "/" + name
}

// hookURL matches the URL of a Hook in a clientConfig, before its placeholders are replaced. hookOrNone also matches
// the URLs of hosts that do not exist.
var (
	hookURL    = regexp.MustCompile(`(?i)^https://(\$\(hooks\.host\)(:\$\(hooks\.port\))?|(localhost|127\.0\.0\.1):\$\(hooks\.port\))(/|$)`)
	hookOrNone = regexp.MustCompile(`(?i)https://(\$\(hooks\.host\)(:\$\(hooks\.port\))?|(localhost|127\.0\.0\.1):\$\(hooks\.port\)|[^/"'\s:]+\.invalid(:\d+)?)[/"'\\\s,}]`)
)

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
	if s.ExpectsCalls() && configures(s) {
		found["any webhook"] = ""
	}
	for _, one := range append(external{}.webhooksIn(options.Installed), WebhooksUnderTest(s)...) {
		unseen := one.HostPort == "" || !options.URLs
		if one.Service != "" {
			unseen = options.Endpoints[one.Service].URL == ""
		}
		if unseen && one.Name != "" { // a conversion webhook has no name
			found[one.Name] = one.Service
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
	s.HasStep(func(step scenario.Step) bool {
		names = slices.AppendSeq(names, maps.Keys(step.Script))
		return false
	})
	slices.Sort(names)
	for _, name := range names {
		if service, is := u[name]; is {
			return fmt.Sprintf("the scenario has a script for webhook %s, but the API server calls this webhook without a Hook: give its configuration in given or install, with a Service, and the URL of the webhook with --endpoint %s=URL", name, cmp.Or(service, "NAMESPACE/NAME"))
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
