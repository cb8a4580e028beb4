package suggest_test

import (
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/suggest"
)

func TestNearest(t *testing.T) {
	areas := []string{"reinvocation", "order", "wire"}
	tests := []struct{ name, want string }{
		{"reinvokation", "reinvocation"},
		{"Ordr", "order"},
		{"WIRE", "wire"},
		{"zebra", ""},
		{"", ""},
		{strings.Repeat("order", 100), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := suggest.Nearest(test.name, areas); got != test.want {
				t.Errorf("Nearest(%q) = %q; want %q", test.name, got, test.want)
			}
		})
	}
	if got := suggest.DidYouMean("ordr", areas); got != `; did you mean "order"?` {
		t.Errorf("DidYouMean = %q", got)
	}
	if got := suggest.DidYouMean("zebra", areas); got != "" {
		t.Errorf("DidYouMean = %q; want nothing", got)
	}
}
