package webhook

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// Kind is whether a webhook mutates. The zero value means that this is not known.
type Kind = check.Kind

// The kinds of webhooks.
const (
	Mutating   = check.Mutating
	Validating = check.Validating
)

// Subject describes the webhooks to check. Set Handler or URL. The fields are:
//
//	Name            the name of the Subject in messages; empty means the name of the test
//	Handler         serves the webhooks in this process; it is called with the path in clientConfig
//	URL             the address of the webhooks, such as "https://127.0.0.1:9443"; if it has a path, every webhook is
//	                called with this path
//	CA              PEM certificates that verify the certificate of the URL; empty means the system's
//	ServerName      the name that the certificate of the URL must have, such as "guard.example-system.svc"; empty means the
//	                host of the URL
//	Replicas        addresses of other replicas of the program at URL, with the same CA and ServerName: they must give
//	                the same answers; empty means that there are none
//	Process         the command of a program that serves the webhooks over HTTPS, for the rules that start and end it,
//	                which With selects: WH-PERF-4 and WH-SEC-5; in its arguments, {port} is replaced with a free port
//	                and {cert-dir} with a folder that has tls.crt and tls.key; empty means that there is none
//	Configurations  the webhook configurations; also CustomResourceDefinitions of the samples, and Namespaces whose
//	                labels matter; other objects are ignored; see [Files] and [Objects]
//	Kind            the kind of the one webhook if there is no configuration; empty means unknown
//	Allow, Reject   samples that the webhooks must allow, and samples that one of them must deny
//	Untouched       samples that the webhooks must allow and not change
//	Volatile        JSON pointers of fields that differ in each answer, such as
//	                "/metadata/annotations/example.com~1time"; a * is any key or index
//	Enforced        JSON pointers of fields that the webhooks set whatever a user wrote, such as
//	                "/spec/containers/*/imagePullPolicy", for rule WH-FIELD-7; what is below them is enforced
//	                too; a * is any key or element, and elements of lists have names, not indices
//	NameSensitive   why the webhooks judge names; empty means that they do not
//	Egress          why the webhooks connect to addresses that are in objects; empty means that they do not
//	Tokens          issues the tokens that the webhooks want from their callers: see [StartIssuer]; every call has a good one,
//	                except in the rules WH-AUTH-1 to 6; nil means that they check no tokens
//	Effects         returns what the webhooks have done to other systems, in a form that reflect.DeepEqual can
//	                compare; nil means that it is not known: rule WH-DRY-2 is inconclusive for a Handler, and unsupported
//	                for a URL, where nothing shows it; see [Recorder]; called by one goroutine at a time
//	Stall           makes what the webhooks wait for, such as another system, not answer until resume is called, for
//	                rule WH-PERF-3; nil means that they wait for nothing
//	APIServer       where the configurations are installed, for rule WH-SERVER-1; the zero value means that they are on no
//	                API server
type Subject = check.Subject

// Sample is an object, and what the webhooks must do with it. The fields are:
//
//	Manifest     the object: a File with one object, or an Object
//	Operation    CREATE, UPDATE, DELETE or CONNECT; empty means CREATE; for UPDATE and DELETE the object is stored
//	Subresource  the subresource of the request; empty means none
//	Old          the old object of an UPDATE; empty means the object itself
//	Versions     the same object in other versions of its kind, which must get the same verdict; empty means that there are
//	             none; those that differ only in their apiVersion, by a CustomResourceDefinition, are made of the object
//	User         sends the request; the zero value means an administrator of a namespace
//	Message      a part of the message of the denial; empty means that it is not checked
//	Fix          a JSON patch, in JSON or YAML, that removes the reason of the denial: the webhook must allow the
//	             fixed object; empty means that it is not checked
type Sample = check.Sample

// APIServer is an API server on which the configurations of a Subject are installed. The fields are:
//
//	Namespace  the namespace in which namespaced samples are sent; it exists, and its only label is
//	           kubernetes.io/metadata.name, or it is in Subject.Configurations; empty means the namespaces of the samples
//	User       the user of DryRun; the zero value means that it is not known, and the webhooks get the user of the samples
//	           when they are called directly
//	DryRun     sends the creation of an object as a dry run, and changes the object to what the API server returns, as
//	           Create of controller-runtime's client with DryRunAll does; nil means that there is no API server
type APIServer = check.APIServer

// Manifest is a Kubernetes object, or a YAML or JSON file with objects. The fields are:
//
//	File    the file
//	Object  the object; a typed object needs no apiVersion and kind if it is one of Kubernetes' own
type Manifest = check.Manifest

// Issuer issues tokens of ServiceAccounts which are bound to a webhook configuration, as kube-apiserver does with the feature
// gate APIServerWebhookAuthenticationToken. The audience of a token is the address in the clientConfig of the webhook: its url, or
// https://NAME.NAMESPACE.svc:PORT/PATH. It serves its public key as an issuer of OpenID Connect does. The fields are:
//
//	URL  the issuer, iss of the tokens, where /.well-known/openid-configuration and /openid/v1/jwks are
//	CA   PEM certificates that verify the certificate of the URL
//
// Keys returns the JSON Web Key Set, for webhooks that read a file, and Close ends the server.
type Issuer = check.Issuer

// StartIssuer starts an Issuer, with a new key for RS256. Let the webhooks trust it, and set Subject.Tokens.
func StartIssuer() (*Issuer, error) { return check.StartIssuer() }

// Files returns a Manifest for each file that matches one of the patterns of [path/filepath.Glob]. A pattern that
// matches no file is misuse: see Report.Misuse.
func Files(patterns ...string) []Manifest { return check.Files(patterns...) }

// Objects returns a Manifest for each object.
func Objects(objects ...runtime.Object) []Manifest {
	all := make([]Manifest, len(objects))
	for i, each := range objects {
		all[i] = Manifest{Object: each}
	}
	return all
}

// Samples returns a Sample for each object, for Subject.Allow.
func Samples(objects ...runtime.Object) []Sample {
	all := make([]Sample, len(objects))
	for i, each := range objects {
		all[i] = Sample{Manifest: Manifest{Object: each}}
	}
	return all
}

// SampleFiles is Files for samples, with one object in each file. A file NAME.fix.yaml is the Fix of NAME.yaml.
func SampleFiles(patterns ...string) []Sample { return check.SampleFiles(patterns...) }
