// Package webhook checks the rules for admission webhooks: that an answer repeats the uid of the request, that a
// webhook called twice changes nothing the second time, that fields which it does not know survive, that an object in
// deletion can lose its finalizers, and more. [Rules] returns all rules; docs/webhook-rules.md explains them.
//
// A [Subject] describes the webhooks: where they are, their configurations, and objects that they allow and deny.
// [Run] checks each rule in a subtest:
//
//	func TestWebhook(t *testing.T) {
//		webhook.Run(t, webhook.Subject{
//			Handler:        server.Handler(),
//			Configurations: webhook.Files("config/webhook/*.yaml"),
//			Allow:          webhook.SampleFiles("testdata/allow/*.yaml"),
//			Reject:         webhook.SampleFiles("testdata/reject/*.yaml"),
//		})
//	}
//
// Any [net/http.Handler] works, such as the Webhook of controller-runtime. No API server is needed.
//
// # Names of rules
//
// A rule has an ID and a name, such as WH-IDEM-1 and twice-is-once. Options accept both, and the subtest has both:
// go test -run TestWebhook/WH-IDEM-1 and go test -run TestWebhook/twice-is-once run the same rule. If the
// configurations have several webhooks, each has a subtest below the rule.
//
// # Reviews
//
// The reviews are built in this process from the samples. For objects of Kubernetes' own kinds, the encoding is that
// of an API server, and the metadata that an API server sets is set. A webhook only gets requests that its rules,
// selectors and match conditions select, except where a rule is about such requests. A validating webhook gets what the
// mutating webhooks of the Subject made of the sample.
//
// The package is public for the tests of webhooks.
//
// # Promise
//
// A rule passes only if the webhook was called and its answer shows that it keeps the rule. A rule that does not apply
// to a webhook is skipped as unsupported, with the reason, and a rule that cannot be judged as inconclusive; with
// [Strict] the latter fails. For each rule, this package has a test with a faulty webhook that breaks this rule and no
// other.
//
// # Not promised
//
// Objects are not defaulted, neither Kubernetes' own nor by the schema of a CustomResourceDefinition: give samples as the
// API server stores them if a default matters. A pass proves nothing about code that the samples do not reach.
package webhook
