// Package doctor judges webhook configurations, policies and bindings without changing anything: whether they can
// stop a cluster, whether the API server can call the webhooks, whether they match what they mean to match.
//
//	report, err := doctor.Judge(ctx, doctor.Input{Manifests: project.Manifests})
//	for _, finding := range report.Findings {
//		fmt.Println(finding)
//	}
//
// The rules are values: All returns them. Whether a webhook or policy decides about a request is computed by package
// reach.
//
// # Promise
//
// What a rule needs and the Input does not have makes the rule inconclusive for the webhook or policy, with the
// reason. It is never a pass. Each finding names a request that is affected.
//
// The client of ReadCluster can only get and list: its transport refuses every other request before it is sent.
//
// # Not promised
//
// Objects in the requests are made up: they have the labels and users that Kubernetes gives them, and few other
// fields. A match condition that reads other fields can decide otherwise about a real request: such a finding is one
// step less severe and says so.
package doctor
