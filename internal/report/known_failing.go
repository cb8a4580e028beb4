package report

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
)

// WriteKnownFailing writes the scenarios that failed as a file for run --known-failing, each with its reason.
func (r Report) WriteKnownFailing(w io.Writer) error {
	var text strings.Builder
	for _, outcome := range r.Ordered().with(framework.Fail) {
		reason := cmp.Or(outcome.KnownFailing, FirstLine(outcome.Reason), "failed")
		fmt.Fprintf(&text, "%s: %s\n", outcome.Name, strconv.QuoteToASCII(reason)) // which YAML reads alike
	}
	_, err := io.WriteString(w, text.String())
	return err
}
