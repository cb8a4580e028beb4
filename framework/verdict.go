package framework

// Level is how binding a requirement is, in the sense of RFC 2119.
type Level string

// The levels, the most binding first.
const (
	// Must is for behaviour that the documentation of the API promises or that the
	// conformance tests of Kubernetes assert. A failed Must fails the run.
	Must Level = "MUST"
	// Should is for de-facto behaviour that clients can depend on. It is reported, and
	// fails the run only with --strict.
	Should Level = "SHOULD"
	// May is for incidental or odd behaviour. It never fails a run.
	May Level = "MAY"
)

// Levels returns all levels, the most binding first.
func Levels() []Level { return []Level{Must, Should, May} }

// Verdict is the outcome of one scenario. The zero value is no verdict.
type Verdict string

// The verdicts. Every selected scenario ends with exactly one of them.
const (
	// Pass: every expectation held.
	Pass Verdict = "pass"
	// Fail: the server was observed to behave differently from the requirement.
	Fail Verdict = "fail"
	// Unsupported: the scenario needs a version, a feature gate, a kind or a capability
	// that this target does not have.
	Unsupported Verdict = "unsupported"
	// Skipped: the operator excluded the scenario.
	Skipped Verdict = "skipped"
	// Inconclusive: what was observed does not decide, for instance because a wait timed
	// out.
	Inconclusive Verdict = "inconclusive"
	// Errored: the cause is a mistake of admissiontest or a failure of the
	// infrastructure, not the admission of the server. It is written "error".
	Errored Verdict = "error"
)

// Verdicts returns all verdicts in the order in which reports count them.
func Verdicts() []Verdict {
	return []Verdict{Pass, Fail, Unsupported, Skipped, Inconclusive, Errored}
}
