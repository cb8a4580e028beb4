// Package check finds errors in a scenario that its types do not exclude: names without a webhook,
// steps with two actions, expectations that nothing can meet.
package check
