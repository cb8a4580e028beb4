package flags

import (
	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// Output is the flag -o.
type Output struct{ format string }

// Formats of the standard output.
const (
	Text = "text"
	JSON = "json"
)

// Add adds -o to a command.
func (o *Output) Add(command *cobra.Command) {
	command.Flags().StringVarP(&o.format, "output", "o", Text, "format of standard output: text or json")
	Complete(command, "output", Text, JSON)
}

// JSON reports whether the format is JSON. It returns an error for an unknown format.
func (o *Output) JSON() (bool, error) {
	switch o.format {
	case Text, JSON:
		return o.format == JSON, nil
	default:
		return false, exit.Usagef("--output %q: want text or json%s", o.format, suggest.DidYouMean(o.format, []string{Text, JSON}))
	}
}
