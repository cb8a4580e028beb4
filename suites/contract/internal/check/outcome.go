package check

import (
	"time"

	"github.com/admissiontest/admissiontest/framework"
)

// Outcome is the result of checking one Rule. The fields are the fields of contract.Outcome.
type Outcome struct {
	Rule     Rule
	Verdict  framework.Verdict
	Reason   string
	Waiver   string
	Log      string
	Duration time.Duration
}
