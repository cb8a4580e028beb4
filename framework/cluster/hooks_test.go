package cluster

import (
	"slices"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
)

func TestAtHooks(t *testing.T) {
	here := HooksAt{Host: "127.0.0.1", Port: 9443}
	inside := HooksAt{Host: "10.0.0.7", Port: 443}
	six := HooksAt{Host: "fd00::7", Port: 9443}
	service := func(namespace, path string) map[string]any {
		return map[string]any{"service": map[string]any{"namespace": namespace, "name": "s", "path": path}}
	}
	at := func(address string) map[string]any { return map[string]any{"url": address} }
	for name, c := range map[string]struct {
		hooks  HooksAt
		client map[string]any
		want   hook.Address
	}{
		"by address":             {here, at("https://127.0.0.1:9443/a/b"), hook.Address{Path: "/a/b"}},
		"by name":                {here, at("https://localhost:9443/a/b"), hook.Address{ServerName: "localhost", Path: "/a/b"}},
		"slash at the end":       {here, at("https://127.0.0.1:9443/a/"), hook.Address{Path: "/a"}},
		"no path":                {here, at("https://127.0.0.1:9443"), hook.Address{Path: "/"}},
		"IPv6":                   {six, at("https://" + six.URLHost() + ":9443/a"), hook.Address{Path: "/a"}},
		"default port":           {inside, at("https://10.0.0.7/a"), hook.Address{Path: "/a"}},
		"other port":             {here, at("https://127.0.0.1:9444/a"), hook.Address{}},
		"no port":                {here, at("https://127.0.0.1/a"), hook.Address{}},
		"other host":             {here, at("https://example.com:9443/a"), hook.Address{}},
		"localhost from inside":  {inside, at("https://localhost/a"), hook.Address{}},
		"http":                   {here, at("http://127.0.0.1:9443/a"), hook.Address{}},
		"nothing":                {here, map[string]any{}, hook.Address{}},
		"own Service":            {here, service("at-x-001", "/a"), hook.Address{ServerName: "s.at-x-001.svc", Path: "/a"}},
		"own Service, no path":   {here, service("at-x-001-far", ""), hook.Address{ServerName: "s.at-x-001-far.svc", Path: "/"}},
		"somebody else's":        {here, service("default", "/a"), hook.Address{}},
		"another scenario's own": {here, service("at-x-002", "/a"), hook.Address{}},
	} {
		got, own := (&Target{options: Options{HooksAt: c.hooks}}).atHooks("at-x-001", c.client)
		if got != c.want || own != (c.want != hook.Address{}) {
			t.Errorf("%s: got %v, %t; want %v", name, got, own, c.want)
		}
	}
}

func TestHooksAbilities(t *testing.T) {
	for _, c := range []struct {
		options Options
		want    []string
	}{
		{Options{HooksAt: HooksAt{Host: "10.0.0.7", Port: 9443}}, nil},
		{Options{HooksAt: HooksAt{Host: "10.0.0.7", Port: 9443}, HookService: true}, []string{framework.AbilityHookService}},
		{Options{HooksAt: HooksAt{Host: "fd00::7", Port: 443}, HookService: true}, []string{framework.AbilityDefaultPort}},
	} {
		if got := (&Target{options: c.options}).hooksAbilities(); !slices.Equal(got, c.want) {
			t.Errorf("hooks at %v: got %v, want %v", c.options.HooksAt, got, c.want)
		}
	}
}
