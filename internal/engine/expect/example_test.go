package expect_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
)

func ExampleJudge() {
	want := &scenario.Expectation{Code: []int{200, 201}, Calls: &scenario.Calls{InOrder: []scenario.Call{{Webhook: "a"}}}}
	got := framework.Result{Status: metav1.Status{Code: 403}, Trace: framework.Trace{{Webhook: "b", Phase: framework.Mutating}}}
	for _, mismatch := range expect.Judge(want, got) {
		fmt.Println(mismatch)
	}
	// Output:
	// code: expected one of 200, 201, actual 403
	// calls[0]: expected a call of a, actual a mutating call of b (call 1 of 1)
	// calls: expected ["a"], actual ["b"]
}
