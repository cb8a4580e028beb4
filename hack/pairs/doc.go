// Package pairs has ten webhooks in plain net/http, each with a policy that is meant to be the same, and with mistakes that are made when
// a webhook is replaced by a policy. Its test counts which of them `admissiontest compare` finds: make proof-compare.
package pairs
