package rules

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/warning"

	"github.com/admissiontest/admissiontest/framework"
)

// Cut is true if the API server cut the warning of a probe, or dropped one.
func TestCut(t *testing.T) {
	said := func(about string, length int) string {
		text := "Validation failed for ValidatingAdmissionPolicy '" + probePrefix + about + "' with binding 'b': "
		return text + strings.Repeat("x", max(0, length-len(text)))
	}
	for name, test := range map[string]struct {
		warnings []string
		want     bool
	}{
		"none":          {nil, false},
		"one long":      {[]string{said("a", 4000)}, true}, // one more would have been cut
		"few short":     {[]string{said("a", 100), said("b", 100)}, false},
		"long, as sent": {[]string{said("a", 1000), said("b", 1000)}, false},
		"long, cut":     {[]string{said("a", 1000), said("b", 1000), said("c", 1000), said("d", 1000), said("e", 1000)}, true},
		"short, dropped": {func() (all []string) {
			for i := range 40 {
				all = append(all, said(strings.Repeat("n", i), 200))
			}
			return all
		}(), true},
		"cut, of others": {[]string{strings.Repeat("a", 3000), strings.Repeat("b", 3000), said("c", 100)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			handler := filters.WithWarningRecorder(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				for _, text := range test.warnings {
					warning.AddWarning(r.Context(), "", text)
				}
			}))
			response := httptest.NewRecorder()
			handler.ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/", nil))
			headers, errs := utilnet.ParseWarningHeaders(response.Header()["Warning"])
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			c := &Case{After: framework.Result{}}
			for _, each := range headers {
				c.After.Warnings = append(c.After.Warnings, each.Text)
			}
			if got := c.Cut(); got != test.want {
				t.Errorf("got %t; want %t for %d of %d warnings", got, test.want, len(headers), len(test.warnings))
			}
		})
	}
}
