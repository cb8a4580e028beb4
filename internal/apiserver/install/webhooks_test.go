package install

import (
	"testing"

	"github.com/admissiontest/admissiontest/framework/hook"
)

func TestAliasOf(t *testing.T) {
	here := hook.Address{Host: "127.0.0.1", Port: 9443}
	inside := hook.Address{Host: "10.0.0.7", Port: 443}
	six := hook.Address{Host: "fd00::7", Port: 9443}
	service := func(namespace, path string) map[string]any {
		return map[string]any{"service": map[string]any{"namespace": namespace, "name": "s", "path": path}}
	}
	url := func(address string) map[string]any { return map[string]any{"url": address} }
	for name, c := range map[string]struct {
		hooks        hook.Address
		clientConfig map[string]any
		want         hook.Alias
	}{
		"IP address":                {here, url("https://127.0.0.1:9443/a/b"), hook.Alias{Path: "/a/b"}},
		"name":                      {here, url("https://localhost:9443/a/b"), hook.Alias{ServerName: "localhost", Path: "/a/b"}},
		"slash at the end":          {here, url("https://127.0.0.1:9443/a/"), hook.Alias{Path: "/a"}},
		"no path":                   {here, url("https://127.0.0.1:9443"), hook.Alias{Path: "/"}},
		"IPv6":                      {six, url("https://" + six.URLHost() + ":9443/a"), hook.Alias{Path: "/a"}},
		"default port":              {inside, url("https://10.0.0.7/a"), hook.Alias{Path: "/a"}},
		"other port":                {here, url("https://127.0.0.1:9444/a"), hook.Alias{}},
		"no port":                   {here, url("https://127.0.0.1/a"), hook.Alias{}},
		"other host":                {here, url("https://example.com:9443/a"), hook.Alias{}},
		"localhost in the cluster":  {inside, url("https://localhost/a"), hook.Alias{}},
		"http":                      {here, url("http://127.0.0.1:9443/a"), hook.Alias{}},
		"nothing":                   {here, map[string]any{}, hook.Alias{}},
		"Service of the scenario":   {here, service("at-x-001", "/a"), hook.Alias{ServerName: "s.at-x-001.svc", Path: "/a"}},
		"such a Service, no path":   {here, service("at-x-001-far", ""), hook.Alias{ServerName: "s.at-x-001-far.svc", Path: "/"}},
		"other Service":             {here, service("default", "/a"), hook.Alias{}},
		"Service of other scenario": {here, service("at-x-002", "/a"), hook.Alias{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, leadsHere := (&Installer{HookAddress: c.hooks}).aliasOf("at-x-001", c.clientConfig)
			if got != c.want || leadsHere != (c.want != hook.Alias{}) {
				t.Errorf("got %v, %t; want %v", got, leadsHere, c.want)
			}
		})
	}
}
