package reach

import "fmt"

// Effect is what a webhook, or a policy with one of its bindings, does for a request.
type Effect string

// The effects.
const (
	// EffectNone means that the webhook or policy has no effect on the request. Finding.Reason says
	// why not.
	EffectNone Effect = "none"
	// EffectCalled means that the webhook is called.
	EffectCalled Effect = "called"
	// EffectMutates means that the mutations of the policy are evaluated.
	EffectMutates Effect = "mutates"
	// EffectInvalid means that a validation of the policy fails. The validationActions of the
	// binding say what happens then: Deny, Warn or Audit.
	EffectInvalid Effect = "invalid"
	// EffectRefused means that the API server refuses the request because of an error, for example
	// an expression that cannot be evaluated with failurePolicy Fail.
	EffectRefused Effect = "refused"
	// EffectUnknown means that the effect depends on something that is not known. Finding.Text says
	// on what.
	EffectUnknown Effect = "unknown"
)

// Reason says why the Effect of a Finding is EffectNone.
type Reason string

// The reasons, in the order in which they are checked.
const (
	// ReasonNoBinding: no binding names the policy.
	ReasonNoBinding Reason = "NoBinding"
	// ReasonNoPolicy: the binding names a policy that does not exist.
	ReasonNoPolicy Reason = "NoPolicy"
	// ReasonExempt: Kubernetes never applies webhooks or policies to the resource. Examples are
	// webhook configurations and policies themselves.
	ReasonExempt Reason = "Exempt"
	// ReasonGroup, ReasonResource, ReasonSubresource, ReasonVersion, ReasonOperation, ReasonScope
	// and ReasonResourceName: no rule matches. The reason names the first part of the request that
	// the closest rule does not match.
	ReasonGroup        Reason = "Group"
	ReasonResource     Reason = "Resource"
	ReasonSubresource  Reason = "Subresource"
	ReasonVersion      Reason = "Version"
	ReasonOperation    Reason = "Operation"
	ReasonScope        Reason = "Scope"
	ReasonResourceName Reason = "ResourceName"
	// ReasonMatchPolicy: a rule would match the resource in another version, but matchPolicy is
	// Exact.
	ReasonMatchPolicy Reason = "MatchPolicy"
	// ReasonExcluded: one of the excludeResourceRules matches.
	ReasonExcluded Reason = "Excluded"
	// ReasonNamespaceSelector and ReasonObjectSelector: the selector does not match.
	ReasonNamespaceSelector Reason = "NamespaceSelector"
	ReasonObjectSelector    Reason = "ObjectSelector"
	// ReasonBindingMatch: the matchResources of the binding do not match.
	ReasonBindingMatch Reason = "BindingMatch"
	// ReasonNoParams: no params were found, and parameterNotFoundAction is Allow.
	ReasonNoParams Reason = "NoParams"
	// ReasonMatchCondition: a match condition is false.
	ReasonMatchCondition Reason = "MatchCondition"
	// ReasonErrorIgnored: there was an error, and failurePolicy is Ignore.
	ReasonErrorIgnored Reason = "ErrorIgnored"
	// ReasonValid: every validation holds.
	ReasonValid Reason = "Valid"
)

// Finding says what one webhook, or one policy with one binding, does for a request.
type Finding struct {
	// Kind is the kind of the configuration or policy: "ValidatingAdmissionPolicy".
	Kind string
	// Name is the name of the configuration or policy. It is empty for a binding without a policy.
	Name string
	// Webhook is the name of the webhook. Empty for a policy.
	Webhook string
	// Binding is the name of the binding. Empty for a webhook, and for a policy without a binding.
	Binding string
	// Effect is what the webhook or policy does.
	Effect Effect
	// Reason says why there is no effect, if Effect is EffectNone. Otherwise it is empty.
	Reason Reason
	// Validations are the indices, from 0, of the validations that fail for at least one of the
	// params, if Effect is EffectInvalid.
	Validations []int
	// Text describes Effect and Reason in one line, without the names.
	Text string
}

// Subject names the webhook, or the policy and binding.
func (f Finding) Subject() string {
	switch {
	case f.Webhook != "":
		return fmt.Sprintf("%s %q, webhook %q", f.Kind, f.Name, f.Webhook)
	case f.Name == "":
		return fmt.Sprintf("%sBinding %q", f.Kind, f.Binding)
	case f.Binding == "":
		return fmt.Sprintf("%s %q", f.Kind, f.Name)
	default:
		return fmt.Sprintf("%s %q, binding %q", f.Kind, f.Name, f.Binding)
	}
}

// String returns the Subject and the Text.
func (f Finding) String() string { return f.Subject() + ": " + f.Text }

// none returns the Finding with EffectNone and a reason.
func (f Finding) none(reason Reason, format string, arguments ...any) Finding {
	return f.with(EffectNone, reason, format, arguments...)
}

// unknown returns the Finding with EffectUnknown.
func (f Finding) unknown(format string, arguments ...any) Finding {
	return f.with(EffectUnknown, "", "it is not known whether it decides: "+format, arguments...)
}

// failed returns the Finding for an error. Ignore says whether failurePolicy is Ignore.
func (f Finding) failed(ignore bool, err error) Finding {
	if ignore {
		return f.none(ReasonErrorIgnored, "an error is ignored, because failurePolicy is Ignore: %v", err)
	}
	return f.with(EffectRefused, "", "the request is refused because of an error, and failurePolicy is Fail: %v", err)
}

func (f Finding) with(effect Effect, reason Reason, format string, arguments ...any) Finding {
	f.Effect, f.Reason, f.Text = effect, reason, fmt.Sprintf(format, arguments...)
	return f
}
