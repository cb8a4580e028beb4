// Package rule is the machinery of the rules for plugins and webhooks. It selects rules (Options), runs the
// function of a rule with a limit of time (T), applies waivers, and describes the outcome. What a rule checks, and
// what a Subject is, is in the suites.
package rule
