package fakes_test

import (
	"fmt"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"k8s.io/apiserver/pkg/admission"
)

// colourPlugin wants a value that every API server has, and one that only its API server has.
type colourPlugin struct {
	base

	colour string
}

func (p *colourPlugin) SetColour(colour string)                { p.colour = colour }
func (p *colourPlugin) SetDrainedNotification(<-chan struct{}) {}

func ExampleNewInitializer() {
	t := &testing.T{} // in a test, its *testing.T
	plugin := &colourPlugin{base: base{admission.NewHandler(admission.Create)}}

	initializer := fakes.NewInitializer(fakes.NewWorld(t),
		fakes.Inject("WantsColour", func(p interface{ SetColour(string) }) { p.SetColour("blue") }),
	).Strict()
	initializer.Initialize(plugin)

	fmt.Println(initializer.Log(), initializer.Err())
	// Output:
	// [{WantsDrainedNotification SetDrainedNotification} {WantsColour SetColour}] <nil>
}
