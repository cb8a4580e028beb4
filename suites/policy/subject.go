package policy

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/suites/policy/internal/rules"
)

// Rule is one rule for policies. [Rules] returns all of them. The fields are:
//
//	ID, Name  the short name, such as "PO-ERR-1", and the long one, such as "no-evaluation-error"; both are stable
//	Level     MUST or SHOULD
//	Title     the rule in one sentence
//	Why       what goes wrong if a policy breaks the rule
//	When      what breaks the rule, if Title does not say it; empty for most rules
//	Fix       how to change a policy that breaks the rule
//	Source    the addresses of issues and documentation
type Rule = rule.Rule

// Outcome is the result of checking one rule. Its method Text describes it for the log of a test. The fields are:
//
//	Rule      the rule
//	Verdict   pass; fail; unsupported: the rule does not apply to the policies; inconclusive: no request that the API
//	          server accepts is about the rule; skipped: the rule is waived; error: a sample cannot be used
//	Reason    how the policies break the rule, or an explanation of another verdict; empty for pass
//	Waiver    the reason of the waiver; empty means that the rule is not waived
//	Duration  how long the judgment took
type Outcome = rule.Outcome

// Option selects or waives rules.
type Option = rule.Option

// Only selects these rules and no others.
func Only(rules ...string) Option {
	return func(o *rule.Options) { o.Only = append(o.Only, rules...) }
}

// Waive allows the policies to break a rule, or a rule to stay inconclusive. Why is the reason; it is required and appears in the output. If the
// policies do not break the rule, the verdict is Fail.
func Waive(name, why string) Option { return rule.Waive(rule.Waiver{Rule: name, Why: why}) }

// WaiveUntil is Waive up to and including a day, such as "2027-01-31".
func WaiveUntil(name, why, lastDay string) Option {
	return rule.Waive(rule.Waiver{Rule: name, Why: why, Until: lastDay})
}

// Strict makes inconclusive rules fail.
func Strict() Option { return func(o *rule.Options) { o.Strict = true } }

// Manifests are objects, from files or from a PolicyTest. The zero value has none. Make it with [Files].
type Manifests struct {
	paths   []string
	objects []shipped.Manifest
}

// Files returns the objects in YAML or JSON in files, and in the files of folders. Subfolders are not read.
func Files(paths ...string) Manifests { return Manifests{paths: paths} }

// none reports whether nothing was given.
func (m Manifests) none() bool { return len(m.paths)+len(m.objects) == 0 }

// read reads the objects. Two samples can have the same name, so each path is read for itself.
func (m Manifests) read() (all []shipped.Manifest, err error) {
	all = m.objects
	for _, path := range m.paths {
		project, wrong := shipped.Read(path)
		if project != nil {
			all = append(all, project.Manifests...)
		}
		err = errors.Join(err, wrong)
	}
	return all, err
}

// OfTest returns the Subject and the options that the field contract of a PolicyTest describes.
func OfTest(c *scenario.Contract) (Subject, []Option) {
	from := func(manifests ...scenario.ContractManifest) (m Manifests) {
		for _, each := range manifests {
			m.objects = append(m.objects, shipped.Manifest{Object: each.Object, File: each.File, Line: each.Line})
		}
		return m
	}
	s := Subject{Policies: from(c.Policies...), Given: from(c.Given...), Good: from(c.Good...), Requester: c.Requester}
	for _, each := range c.Requests {
		request := Request{Name: each.Name, Object: from(each.Object), Subresource: each.Subresource, Denied: each.Denied}
		if each.Old != nil {
			request.Old = from(*each.Old)
		}
		s.Requests = append(s.Requests, request)
	}
	for _, each := range c.Bad {
		bad := Bad{Object: from(each.Object), Denied: each.Denied}
		if each.Fix != nil {
			bad.Fix = from(*each.Fix)
		}
		s.Bad = append(s.Bad, bad)
	}
	var options []Option
	for _, each := range c.Except {
		options = append(options, WaiveUntil(each.Rule, each.Reason, each.Until))
	}
	return s, options
}

// Subject describes the policies, and objects that they allow and refuse. Policies are required, and a good object or a request
// that they allow.
type Subject struct {
	// Name is the name of the policies in messages. Empty means the name of the test.
	Name string
	// Policies are the policies and bindings. Other objects among them are installed with them.
	Policies Manifests
	// Given is what must exist before: CustomResourceDefinitions, params, Namespaces. The zero value has nothing.
	Given Manifests
	// Good are objects that the policies allow. One without a namespace is created in a namespace without labels; a
	// namespace that is not Given is created without labels too.
	Good Manifests
	// Bad are objects that the policies refuse. Without one, the rules about defects are unsupported.
	Bad []Bad
	// Requests are updates and deletions that the policies allow or refuse. The zero value has none.
	Requests []Request
	// Requester is the user of the requests. It gets the rights that the requests need. The zero value is an ordinary
	// user without groups: policies often exempt administrators.
	Requester framework.User
	// Endpoints say where the webhooks are that configurations among the Policies name, by NAMESPACE/NAME of their Service or by HOST:PORT
	// of their URL. Only [Differences] uses them. Nil means that the URLs in the configurations are called.
	Endpoints map[string]framework.Endpoint
	// Program starts the program that serves the webhooks, with the content of a kubeconfig file of the API server. Only [Differences]
	// uses it. Nil means that the webhooks run already.
	Program func(kubeConfig []byte) (stop func() error, err error)
	// KubernetesVersion is the version of kube-apiserver: "1.37" or "1.37.2". Empty means the default version.
	KubernetesVersion string
	// BinaryAssetsDirectory has kube-apiserver and etcd. Empty means the programs that package envtest finds, downloads or builds.
	BinaryAssetsDirectory string
}

// Bad is an object that the policies refuse.
type Bad struct {
	// Object has one object.
	Object Manifests
	// Denied is a part of the message of the refusal. Required.
	Denied string
	// Fix is the object without its defect: one object of the same kind. The zero value means the first good object of
	// the same kind. If there is none, the rules about defects do not use this object.
	Fix Manifests
}

// Request is an update or a deletion. What it finds is stored before the policies are installed.
type Request struct {
	// Name names the request in messages. Empty means requests[0] for the first one.
	Name string
	// Object is one object: the new one of an update, or what is deleted.
	Object Manifests
	// Old is the object before the update, with the same kind, name and namespace. The zero value means a deletion.
	Old Manifests
	// Subresource is the subresource of the update, whose objects have the same kind, such as "status". Empty means none.
	Subresource string
	// Denied is a part of the message of the refusal. Empty means that the policies allow the request.
	Denied string
}

// read reads the manifests.
func (s Subject) read() (rules.Subject, error) {
	read := rules.Subject{Name: s.Name, Requester: s.Requester}
	if read.Requester.Name == "" {
		read.Requester.Name = "contract-requester"
	}
	var errs []error
	from := func(m Manifests) []shipped.Manifest {
		all, err := m.read()
		errs = append(errs, err)
		return all
	}
	one := func(field string, m Manifests) map[string]any {
		all, err := m.read()
		if err == nil && len(all) != 1 {
			err = fmt.Errorf("got %d objects; want one", len(all))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", field, err))
			return nil
		}
		return all[0].Object
	}
	read.Policies, read.Given = from(s.Policies), from(s.Given)
	for i, good := range from(s.Good) {
		read.Good = append(read.Good, rules.Sample{Name: fmt.Sprintf("good[%d]", i), Object: good.Object})
	}
	for i, bad := range s.Bad {
		name := fmt.Sprintf("bad[%d]", i)
		each := rules.Bad{Sample: rules.Sample{Name: name, Object: one(name, bad.Object)}, Denied: bad.Denied}
		if !bad.Fix.none() {
			each.Fix = one("the fix of "+name, bad.Fix)
		}
		read.Bad = append(read.Bad, each)
	}
	for i, request := range s.Requests {
		name := cmp.Or(request.Name, fmt.Sprintf("requests[%d]", i))
		sample := rules.Sample{Name: name, Object: one(name, request.Object), Deleted: request.Old.none(), Subresource: request.Subresource}
		if sample.Old = sample.Object; !sample.Deleted {
			sample.Old = one("the old object of "+name, request.Old)
		}
		if request.Denied == "" {
			read.Good = append(read.Good, sample)
		} else {
			read.Bad = append(read.Bad, rules.Bad{Sample: sample, Denied: request.Denied})
		}
	}
	for i, bad := range read.Bad {
		if bad.Fix == nil {
			read.Bad[i].Fix = fixOf(bad.Sample, read.Good)
		}
	}
	return read, errors.Join(errs...)
}

// fixOf returns the first good object of the same kind as a bad one, by the same request: an update of the same object. It can be nil.
func fixOf(bad rules.Sample, all []rules.Sample) map[string]any {
	for _, good := range all {
		same := bad.Object != nil && good.Object["apiVersion"] == bad.Object["apiVersion"] && good.Object["kind"] == bad.Object["kind"]
		if same && !bad.Deleted && !good.Deleted && good.Subresource == bad.Subresource && reflect.DeepEqual(good.Old, bad.Old) {
			return good.Object
		}
	}
	return nil
}
