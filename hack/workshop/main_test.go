package workshop_test

import (
	"errors"
	"flag"
	"io"
	"testing"

	"github.com/admissiontest/admissiontest/hack/workshop"
)

// An argument that is no flag is an error, and not ignored.
func TestParse(t *testing.T) {
	parse := func(args ...string) (int, error) {
		flags := flag.NewFlagSet("test", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		n := flags.Int("n", 0, "a number")
		err := workshop.Parse(flags, args)
		return *n, err
	}
	if n, err := parse("-n", "3"); n != 3 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if _, err := parse("-n", "3", "-help"); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("with -help: got %v", err)
	}
	if _, err := parse("-n", "3", "more"); err == nil || err.Error() != `unexpected argument "more"` {
		t.Errorf("with an argument: got %v", err)
	}
}
