package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/admissiontest/admissiontest/internal/suggest"
)

// The formats of the standard output.
const (
	formatText  = "text"
	formatJSON  = "json"
	formatJUnit = "junit"
)

// outputFlag is the flag -o.
type outputFlag struct {
	formats []string
	format  string
}

// add adds -o to a command. Without formats, they are text and JSON.
func (o *outputFlag) add(command *cobra.Command, formats ...string) {
	if o.formats = formats; len(formats) == 0 {
		o.formats = []string{formatText, formatJSON}
	}
	command.Flags().StringVarP(&o.format, "output", "o", o.formats[0], "format of standard output: "+o.choices())
}

// choices are the formats: "text, json or junit".
func (o *outputFlag) choices() string {
	last := len(o.formats) - 1
	return strings.Join(o.formats[:last], ", ") + " or " + o.formats[last]
}

// json reports whether the format is JSON. It returns an error for an unknown format.
func (o *outputFlag) json() (bool, error) {
	if !slices.Contains(o.formats, o.format) {
		return false, usagef("--output %q: want %s%s", o.format, o.choices(), suggest.DidYouMean(o.format, o.formats))
	}
	return o.format == formatJSON, nil
}

// givenFlags returns which of the named flags the command line sets, "--a and --b". It is
// empty if the command line sets none.
func givenFlags(command *cobra.Command, names ...string) string {
	var found []string
	for _, name := range names {
		if command.Flags().Changed(name) {
			found = append(found, "--"+name)
		}
	}
	return strings.Join(found, " and ")
}

// argsOf returns the named flags that a command line sets, with their values, for another command line.
func argsOf(set *pflag.FlagSet, names ...string) []string {
	var args []string
	for _, name := range names {
		flag := set.Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		switch value := flag.Value.(type) {
		case *pluginFlag:
			for _, one := range *value {
				args = append(args, "--"+name, one.String())
			}
		case pflag.SliceValue:
			for _, one := range value.GetSlice() {
				args = append(args, "--"+name, one)
			}
		default:
			if value.Type() != "bool" {
				args = append(args, "--"+name, value.String())
			} else {
				args = append(args, strings.TrimSuffix("--"+name+"="+value.String(), "=true"))
			}
		}
	}
	return args
}
