package rules

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/cel"
)

// Case is a request with its responses before and after the policies were installed.
type Case struct {
	// Group says why the request is sent.
	Group Group
	// What names the request: "create Pod good[0], without spec.containers[0].resources".
	What string
	// Good and Bad are the indexes of the sample that it was made from; the other one is -1.
	Good, Bad int
	// own is true for a request about a sample that is stored under its own name.
	own bool
	// otherName is true if the request finds its object under another name, because another sample has its own.
	otherName bool
	Request   framework.Request
	// Control is another request with which this one is compared. Nil means none.
	Control *Case
	// ByOperator is the same request by a controller that is none of Kubernetes. Nil means none.
	ByOperator *Case
	// needs are what must be true of other requests, or this one says nothing about the policies.
	needs []need
	// wrong says, for an Inert request, how the policies change the wrong element, or "".
	wrong func() string
	// chosen are, for the creation of a sample, the paths of values that the API server chooses, which differ in each response.
	chosen []cel.Path
	// Templates are the parts of an Owned object that its owner wrote.
	Templates []cel.Path
	// Before and After are the responses without and with the policies.
	Before, After framework.Result
	// Forced is the response with policies whose mutations have failurePolicy Fail instead of Ignore. It is zero if there are none.
	Forced framework.Result
}

// need returns why what it is about is not so, or "".
type need func() string

// accepted needs another request that the API server accepts.
func accepted(of *Case) need {
	return func() string {
		if of.Accepted() {
			return ""
		}
		return "the API server does not accept: " + of.What
	}
}

// refused needs another request that the policies refuse.
func refused(of *Case) need {
	return func() string {
		if of.Accepted() && of.Refusal() == "" {
			return "the policies do not refuse: " + of.What
		}
		return accepted(of)()
	}
}

// notAsked needs that the policies do not ask for the element that another request lacks.
func notAsked(of *Case) need {
	return func() string {
		if of.Accepted() && of.Denied() && len(of.Errors()) == 0 {
			return "the policies ask for an element, and do not forbid one"
		}
		return ""
	}
}

// Meaningless returns why a request says nothing about the policies, or "".
func (c *Case) Meaningless() string {
	for _, each := range c.needs {
		if why := each(); why != "" {
			return why
		}
	}
	return ""
}

// Group is a kind of Case.
type Group string

// The values of Group.
const (
	Samples    Group = "samples"     // the creation of each object of the Subject
	Fixes      Group = "fixes"       // the creation of each fix
	Variants   Group = "variants"    // a field removed, a list or map emptied
	Generated  Group = "generated"   // the object with generateName
	Violations Group = "violations"  // the update of a stored fix to the bad object
	Lacking    Group = "lacking"     // the update of a label of a stored object that lacks what is read
	Unrelated  Group = "unrelated"   // the update of a label of a stored object
	Repairs    Group = "repairs"     // the update of a stored bad object to its fix
	Finalizers Group = "finalizers"  // the update of an object in deletion that removes the finalizer
	Deletions  Group = "deletions"   // the deletion of a stored object by the requester
	Controller Group = "controllers" // the deletion of a stored object by a controller of Kubernetes
	Siblings   Group = "siblings"    // the bad element in another list with such elements
	Subwrites  Group = "subwrites"   // the defect by a subresource that can carry it
	Renamed    Group = "renamed"     // the creation of a sample under another name
	Embedded   Group = "embedded"    // the creation of what the bad object embeds: the Pod of its template
	Children   Group = "children"    // the creation of what a good object embeds, by a controller
	Owned      Group = "owned"       // the creation of what the policies made of a good object, with a controller
	Applied    Group = "applied"     // the second apply of a good object; the Control is the first
	Large      Group = "large"       // a sample with ten times as many elements in a list or map that expressions loop over
	Reapplied  Group = "reapplied"   // the creation of what a policy made of a good object
	Elements   Group = "elements"    // the bad element of a list among good ones
	Verbs      Group = "verbs"       // what the Control does, by another verb or in no dry run
	Versions   Group = "versions"    // the creation of the bad object in another version
	Exempted   Group = "exempted"    // the bad object with other labels or annotations
	Constants  Group = "constants"   // a value that has more than a constant of an expression; the Control does not have the constant
	Inert      Group = "inert"       // the creation of a good object with an element before the one that the policies change
	Foreign    Group = "foreign"     // the creation of a sample with metadata of other clients
	Shapes     Group = "shapes"      // the creation of samples and fixes, with bindings to variants of the params
	Reordered  Group = "reordered"   // the creation of samples and fixes with the lists of the params in reverse order
	Paramless  Group = "paramless"   // the creation of samples and fixes after the params were deleted
	Ending     Group = "ending"      // what controllers send to objects in a namespace in deletion, after the params in it were deleted
	Observed   Group = "observed"    // the creation of samples and fixes, only with the bindings without the action Deny
	Forms      Group = "forms"       // the creation of a sample with another form of a quantity; the Control is the sample
	Orders     Group = "orders"      // the creation of a sample with two mutating policies, one after the other; the Control has the other order
	Existing   Group = "existing"    // the update without a change of an object that the API server has
	Called     Group = "called"      // the request of a sample by another user
	Placed     Group = "placed"      // the creation of a sample in a namespace with other labels
	Varied     Group = "varied"      // a value near a constant of an expression
	Controls   Group = "controls"    // a Control that means nothing without its other request

	Every Group = "" // each of them
)

// Accepted reports whether the API server accepts the request without the policies.
func (c *Case) Accepted() bool { return c.Before.Allowed() }

// Errors returns the evaluation errors of policies and of their probes, each once.
func (c *Case) Errors() []string {
	var found []string
	for _, text := range append(slices.Clone(c.After.Warnings), c.After.Status.Message, c.Forced.Status.Message) {
		text = ofValidation.ReplaceAllString(text, "validations[$1] resulted in error: ")
		if strings.Contains(text, "resulted in error") && !slices.Contains(found, text) {
			found = append(found, text)
		}
	}
	return found
}

// ofValidation matches what an API server says about an error of a validation of a probe. See quotable.
var ofValidation = regexp.MustCompile(`expression 'variables\.` + validationVariable + `(\d+)[^']*' resulted in error: composited variable "` + validationVariable + `\d+" fails to evaluate: `)

// ErrorOf reports whether an evaluation error is that of one of the expressions. An API server quotes the expression.
func ErrorOf(text string, expressions []string) bool {
	return slices.ContainsFunc(expressions, func(each string) bool {
		return strings.Contains(text, "expression '"+each+"' resulted in error") || strings.Contains(text, "expression '"+lineOf(each)+"' resulted in error")
	})
}

// Evaluated reports whether a policy with a name was evaluated for the request, or any policy for "". It is only known of
// ValidatingAdmissionPolicies.
func (c *Case) Evaluated(policy string) bool {
	return slices.ContainsFunc(c.After.Warnings, func(text string) bool {
		return strings.Contains(text, "'"+probePrefix+policy) && (strings.Contains(text, evaluatedMark) || strings.Contains(text, "resulted in error")) &&
			(policy == "" || strings.Contains(text, "'"+probePrefix+policy+"'"))
	})
}

// Cut reports whether the API server may have cut or dropped warnings, so that an evaluation error is not seen. If the warnings have
// more than 4096 characters in all, it cuts each of them to 256, and drops those that then go beyond 4096
// (k8s.io/apiserver/pkg/endpoints/filters/warning.go).
func (c *Case) Cut() bool {
	const most, ofOne = 4096, 256
	total := 0
	for _, text := range c.After.Warnings {
		length := utf8.RuneCountInString(text)
		if length == ofOne && strings.Contains(text, "'"+probePrefix) {
			return true
		}
		total += length
	}
	return total > most-ofOne
}

// Refusal returns the message of the refusal after the policies were installed, or "".
func (c *Case) Refusal() string {
	if c.After.Allowed() {
		return ""
	}
	return c.After.Status.Message
}

// mutated reports whether mutations changed the request, or refused it because of an error.
func (c *Case) mutated() bool {
	if c.After.Allowed() {
		return len(c.Changed(c.Before, c.After, false)) > 0 || c.Forced.Status.Code != 0 && !c.Forced.Allowed()
	}
	return c.Denied() && !validatingDenies.MatchString(c.Refusal()) || c.After.Status.Code >= http.StatusInternalServerError
}

// Denied reports whether a policy refused the request. Something else can, which accepted the same request before.
func (c *Case) Denied() bool { return deniedBy.MatchString(c.Refusal()) }

// deniedBy is in each refusal by a policy; only ValidatingAdmissionPolicies have their kind in it.
var deniedBy = regexp.MustCompile(`(?i)policy ['"][^'"]*['"](?: with binding '[^']*')? denied request: `)

// Observations are the responses to all requests about a Subject.
type Observations struct {
	// Server is the API server.
	Server framework.TargetInfo
	Cases  []*Case
	// Missing are paths in expressions that no kind has which the policy matches.
	Missing []MissingPath
	// NotKnown says of which expressions it is not known whether a kind has what they read.
	NotKnown []string
	// Lacks says of groups why no request can be made from the samples.
	Lacks map[Group]string
	// Alone has, for each of several MutatingAdmissionPolicies by its name, the creations of the samples with only this one.
	Alone map[string][]*Case
	// Shapes says of which variant of a param each binding of a probe is.
	Shapes map[string]string
	// NotServed has the kinds of samples that the API server does not serve.
	NotServed []string
	// Unsent says of groups why their requests were not sent with the policies, and of Every why no request was.
	Unsent map[Group]string
	// Dropped is how many requests the API server does not accept without the policies.
	Dropped int
}

// Of returns the accepted requests of a group.
func (o *Observations) Of(groups ...Group) []*Case {
	var found []*Case
	for _, c := range o.Cases {
		if c.Accepted() && slices.Contains(groups, c.Group) {
			found = append(found, c)
		}
	}
	return found
}

// decidedByName reports whether the sample of a case gets another decision under another name.
func (o *Observations) decidedByName(c *Case) bool {
	named, renamed := o.first(Samples, c.Good, c.Bad), o.first(Renamed, c.Good, c.Bad)
	return named != nil && renamed != nil && named.Accepted() && renamed.Accepted() && (named.Refusal() == "") != (renamed.Refusal() == "")
}

// first returns the first request of a group about a sample, or nil.
func (o *Observations) first(group Group, good, bad int) *Case {
	for _, c := range o.Cases {
		if c.Group == group && c.Good == good && c.Bad == bad {
			return c
		}
	}
	return nil
}

// ErrSubject marks a Subject that cannot be observed: a policy that the API server refuses, for instance.
var ErrSubject = errors.New("the Subject cannot be used")
