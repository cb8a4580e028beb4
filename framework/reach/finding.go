package reach

import "fmt"

// Effect is what a webhook, or a policy with a binding, does about a request.
type Effect string

// The effects.
const (
	// EffectNone means that it does not decide. Finding.Reason says why not.
	EffectNone Effect = "none"
	// EffectCalled means that the webhook is called.
	EffectCalled Effect = "called"
	// EffectMutates means that the mutations of the policy are evaluated.
	EffectMutates Effect = "mutates"
	// EffectInvalid means that a validation of the policy does not hold: the validationActions of
	// the binding follow.
	EffectInvalid Effect = "invalid"
	// EffectRefused means that the request is refused because of an error, not by a decision.
	EffectRefused Effect = "refused"
	// EffectUnknown means that what would decide is not known. Finding.Text says what.
	EffectUnknown Effect = "unknown"
)

// Reason is why something does not decide about a request.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	// ReasonNoBinding: no binding names the policy.
	ReasonNoBinding Reason = "NoBinding"
	// ReasonNoPolicy: the binding names a policy that does not exist.
	ReasonNoPolicy Reason = "NoPolicy"
	// ReasonExempt: Kubernetes exempts the resource, for instance admission configurations.
	ReasonExempt Reason = "Exempt"
	// ReasonGroup, ReasonResource, ReasonSubresource, ReasonVersion, ReasonOperation, ReasonScope
	// and ReasonResourceName: no rule matches, and the rule that matches best does not match this
	// part of the request.
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
	// ReasonExcluded: excludeResourceRules match.
	ReasonExcluded Reason = "Excluded"
	// ReasonNamespaceSelector and ReasonObjectSelector: the selector does not match.
	ReasonNamespaceSelector Reason = "NamespaceSelector"
	ReasonObjectSelector    Reason = "ObjectSelector"
	// ReasonBindingMatch: matchResources of the binding do not match.
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

// Finding is what is known about one webhook, or about one policy with one binding, for a request.
type Finding struct {
	// Kind is the kind of the configuration or policy: "ValidatingAdmissionPolicy".
	Kind string
	// Name is the name of the configuration or policy. It is empty for a binding without a policy.
	Name string
	// Webhook is the name of the webhook.
	Webhook string
	// Binding is the name of the binding. It is empty for a policy without one.
	Binding string
	// Effect is what it does about the request.
	Effect Effect
	// Reason is why it does not decide, if Effect is EffectNone.
	Reason Reason
	// Validations are the indices of the validations that do not hold for one of the params, if
	// Effect is EffectInvalid.
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

// String is the Subject and the Text.
func (f Finding) String() string { return f.Subject() + ": " + f.Text }

// none returns the Finding for what does not decide.
func (f Finding) none(reason Reason, format string, arguments ...any) Finding {
	return f.with(EffectNone, reason, format, arguments...)
}

// unknown returns the Finding for what is not known.
func (f Finding) unknown(format string, arguments ...any) Finding {
	return f.with(EffectUnknown, "", "it is not known whether it decides: "+format, arguments...)
}

// failed returns the Finding for an error.
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
