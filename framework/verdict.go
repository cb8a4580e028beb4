package framework

// Level is how binding a requirement is, in the sense of RFC 2119.
type Level string

// The levels, from the binding one down.
const (
	// Must marks what the API's documentation promises or upstream's own
	// conformance tests assert. A failed Must fails the run.
	Must Level = "MUST"
	// Should marks de-facto behaviour that clients can depend on. It is reported,
	// and fails the run only under --strict.
	Should Level = "SHOULD"
	// May marks an incidental or odd behaviour. It never fails a run.
	May Level = "MAY"
)

// Levels returns every Level, the binding one first.
func Levels() []Level { return []Level{Must, Should, May} }

// Verdict is what a run says of one scenario. The zero value is no verdict.
type Verdict string

// The verdicts. Every selected scenario ends with exactly one of them.
const (
	// Pass: every expectation held.
	Pass Verdict = "pass"
	// Fail: the server was observed to do something else than the requirement says.
	Fail Verdict = "fail"
	// Unsupported: the scenario names a version, a feature gate or an ability that
	// this target does not have.
	Unsupported Verdict = "unsupported"
	// Skipped: the operator excluded the scenario.
	Skipped Verdict = "skipped"
	// Inconclusive: nothing was observed that could decide, a fence that never
	// answered for instance.
	Inconclusive Verdict = "inconclusive"
	// Errored: the fault is ours or the infrastructure's, not the server's
	// admission. It is written "error".
	Errored Verdict = "error"
)

// Verdicts returns every Verdict in the order in which reports count them.
func Verdicts() []Verdict {
	return []Verdict{Pass, Fail, Unsupported, Skipped, Inconclusive, Errored}
}
