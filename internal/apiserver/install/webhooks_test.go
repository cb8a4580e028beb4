package install

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
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

// A call of a URL goes to the address that an API server would call. A clientConfig that it refuses stays.
func TestUpstreamOfURL(t *testing.T) {
	e := Endpoints{URLs: true, ByAddress: map[string]framework.Endpoint{"127.0.0.1:9443": {CABundle: []byte("filled in")}, "a/s": {URL: "https://h/x"}}}
	for name, test := range map[string]struct {
		given map[string]any
		want  *hook.Upstream
	}{
		"path":               {map[string]any{"url": "https://guard.example.com/a//b/../c/?"}, &hook.Upstream{URL: "https://guard.example.com/a/c"}},
		"escapes":            {map[string]any{"url": "https://[::1]:1/a%2Fb%20c"}, &hook.Upstream{URL: "https://[::1]:1/a/b%20c"}},
		"caBundle":           {map[string]any{"url": "https://127.0.0.1:9443", "caBundle": "b3du"}, &hook.Upstream{URL: "https://127.0.0.1:9443/", CABundle: []byte("own")}},
		"no caBundle":        {map[string]any{"url": "https://127.0.0.1:9443", "caBundle": nil}, &hook.Upstream{URL: "https://127.0.0.1:9443/", CABundle: []byte("filled in")}},
		"odd caBundle":       {map[string]any{"url": "https://127.0.0.1:9443", "caBundle": int64(1)}, nil},
		"not base64":         {map[string]any{"url": "https://127.0.0.1:9443", "caBundle": "?"}, nil},
		"http":               {map[string]any{"url": "http://127.0.0.1:9443"}, nil},
		"query":              {map[string]any{"url": "https://127.0.0.1:9443?a=b"}, nil},
		"fragment":           {map[string]any{"url": "https://127.0.0.1:9443#a"}, nil},
		"user":               {map[string]any{"url": "https://me@127.0.0.1:9443"}, nil},
		"no host":            {map[string]any{"url": "https:///a"}, nil},
		"not a URL":          {map[string]any{"url": "https://%"}, nil},
		"neither":            {map[string]any{}, nil},
		"both":               {map[string]any{"url": "https://h", "service": map[string]any{"namespace": "a", "name": "s"}}, nil},
		"path of a Service":  {map[string]any{"service": map[string]any{"namespace": "a", "name": "s", "path": "/b/"}}, &hook.Upstream{URL: "https://h/x/b", ServiceName: "s.a.svc"}},
		"Service by its own": {map[string]any{"service": map[string]any{"namespace": "a", "name": "other"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, e.Upstream(test.given)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	if got := (Endpoints{}).Upstream(map[string]any{"url": "https://127.0.0.1:9443"}); got != nil {
		t.Errorf("an API server elsewhere calls the URL itself, got %v", got)
	}
}

func TestRedirect(t *testing.T) {
	caBundle := []byte("a CA")
	e := Endpoints{ByAddress: map[string]framework.Endpoint{
		"a/url": {URL: "https://127.0.0.1:1/", CABundle: caBundle}, "a/ca": {CABundle: caBundle},
	}}
	service := func(name string) map[string]any {
		return map[string]any{"namespace": "a", "name": name, "path": "/mutate", "port": int64(8443)}
	}
	encoded := base64.StdEncoding.EncodeToString(caBundle)
	for name, test := range map[string]struct {
		given, want map[string]any
	}{
		"other Service":        {map[string]any{"service": service("other")}, map[string]any{"service": service("other")}},
		"URL":                  {map[string]any{"service": service("url")}, map[string]any{"url": "https://127.0.0.1:1/mutate", "caBundle": encoded}},
		"URL without a path":   {map[string]any{"service": map[string]any{"namespace": "a", "name": "url"}}, map[string]any{"url": "https://127.0.0.1:1", "caBundle": encoded}},
		"CA only":              {map[string]any{"service": service("ca")}, map[string]any{"service": service("ca"), "caBundle": encoded}},
		"Service and URL":      {map[string]any{"service": service("url"), "url": "https://h", "caBundle": "b3du"}, map[string]any{"service": service("url"), "url": "https://h", "caBundle": "b3du"}},
		"caBundle is given":    {map[string]any{"service": service("ca"), "caBundle": "b3du"}, map[string]any{"service": service("ca"), "caBundle": "b3du"}},
		"caBundle to fill in":  {map[string]any{"service": service("ca"), "caBundle": "Cg=="}, map[string]any{"service": service("ca"), "caBundle": encoded}},
		"caBundle is not text": {map[string]any{"service": service("ca"), "caBundle": nil}, map[string]any{"service": service("ca"), "caBundle": encoded}},
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := json.Marshal(test.given)
			if diff := cmp.Diff(test.want, e.Redirect(test.given)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if after, _ := json.Marshal(test.given); string(after) != string(before) {
				t.Errorf("the manifest was changed to %s", after)
			}
		})
	}
}
