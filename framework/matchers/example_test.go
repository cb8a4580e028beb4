package matchers_test

import (
	"testing"

	"github.com/onsi/gomega"

	. "github.com/admissiontest/admissiontest/framework/matchers"
)

func Example() {
	_ = func(t *testing.T) {
		g := gomega.NewWithT(t)
		result := do(t, "plain")
		g.Expect(result).To(gomega.SatisfyAll(BeAdmitted(), HaveMutatedNothing(), BeIdempotent()))
	}
}
