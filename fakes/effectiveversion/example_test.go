package effectiveversion_test

import (
	"fmt"
	"log"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/fakes/effectiveversion"
	"github.com/admissiontest/admissiontest/framework"
)

// exampleT is a framework.T for examples. In a test, use its *testing.T.
type exampleT struct{ framework.T }

func (exampleT) Helper()                           {}
func (exampleT) Fatalf(format string, args ...any) { log.Fatalf(format, args...) }

// An API server of Kubernetes 1.36 that emulates 1.35.
func ExampleInject() {
	version := effectiveversion.New(exampleT{}, "1.36", "1.35")
	initializer := fakes.NewInitializer(nil, effectiveversion.Inject(version)).Strict()

	plugin := &versioned{}
	initializer.Initialize(plugin)
	fmt.Println(plugin.got.EmulationVersion(), initializer.Err())
	// Output: 1.35 <nil>
}
