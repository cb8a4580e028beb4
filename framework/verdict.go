package framework

// Level is how binding a requirement is, in the sense of RFC 2119.
type Level string

// The levels, the most binding first.
const (
	// Must is for behaviour that the documentation of the API promises or that the
	// conformance tests of Kubernetes assert. A failed Must fails the run.
	Must Level = "MUST"
	// Should is for de-facto behaviour that clients can depend on. A failed Should is reported, and
	// fails the run only with --strict.
	Should Level = "SHOULD"
	// May is for incidental or odd behaviour. A failed May never fails a run.
	May Level = "MAY"
)

// Levels returns all levels, the most binding first.
func Levels() []Level { return []Level{Must, Should, May} }

// Verdict is the outcome of one scenario. The zero value means that there is no verdict.
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
	// Skipped: the person who started the run excluded the scenario.
	Skipped Verdict = "skipped"
	// Inconclusive: the observations do not decide whether the requirement holds, for example
	// because a wait timed out.
	Inconclusive Verdict = "inconclusive"
	// Errored, written "error": the scenario could not be carried out because of a failure of the
	// infrastructure, or a mistake in admissiontest or in the scenario. It says nothing about the
	// admission of the server.
	Errored Verdict = "error"
)

// Verdicts returns all verdicts in the order in which reports count them.
func Verdicts() []Verdict {
	return []Verdict{Pass, Fail, Unsupported, Skipped, Inconclusive, Errored}
}
