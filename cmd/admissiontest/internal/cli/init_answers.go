package cli

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/flags"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// answers reports whether the webhooks are served, so that their answers can be written.
func (f *initFlags) answers() bool {
	return len(f.run.program.Command) > 0 || len(flags.Args(f.run.set, "endpoint", "endpoint-ca")) > 0
}

// trial runs scenarios. It returns their outcomes, and the last response in each.
func (w *webhookInit) trial(ctx context.Context, documents []yaml.MapSlice) (outcomes map[string]report.Outcome, results map[string]framework.Result, err error) {
	text, err := documentsText(documents)
	if err != nil {
		return nil, nil, err
	}
	file, err := os.CreateTemp(w.folder, ".init-*.yaml")
	if err != nil {
		return nil, nil, exit.Usagef("--to: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	if _, err := file.WriteString(text); errors.Join(err, file.Close()) != nil {
		return nil, nil, exit.Usagef("--to: %w", err)
	}
	f := w.flags.run
	p, err := w.plan(&f, []string{file.Name()}, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("init: run what it found: %w", err)
	}
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	results = map[string]framework.Result{}
	var mu sync.Mutex
	p.options.Results = func(name string, result framework.Result) {
		mu.Lock()
		defer mu.Unlock()
		results[name] = result
	}
	f.program.Progress = func(string) {}
	targets := w.provider
	if targets == nil {
		targets = f.target.Provider(f.program.Progress, "", nil)
	}
	p.options.Provider = f.program.Provider(targets, end, len(p.options.Install.Objects()) > 0)
	ran, err := engine.Run(running, p.options)
	switch {
	case ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	case err != nil && exit.Code(err) == exit.Usage:
		return nil, nil, err
	case err != nil:
		err = exit.New(exit.Infrastructure, fmt.Errorf("init: run what it found: %w", endedBefore(running, err)))
		f.program.PrintLog(w.Stderr, err)
		return nil, nil, err
	}
	outcomes = map[string]report.Outcome{}
	for _, o := range ran.Outcomes {
		if o.Mistake {
			return nil, nil, exit.Usagef("init: %s", o.Reason)
		}
		outcomes[o.Name] = o
	}
	return outcomes, results, nil
}

// answer sends each request in a scenario of its own. It keeps those that reach their webhook, with what the webhooks answer.
// If the object of a request cannot be created, it is given.
func (w *webhookInit) answer(ctx context.Context) error {
	name := func(h *initWebhook, step int) string { return fmt.Sprintf("%s.step%d", h.scenario, step) }
	for again := true; again; {
		var documents []yaml.MapSlice
		for _, h := range w.all {
			for i, step := range h.steps {
				documents = append(documents, w.document(name(h, i), h, []*initStep{step}))
			}
		}
		if len(documents) == 0 {
			return nil
		}
		w.note(fmt.Sprintf("sending the requests: %d", len(documents)))
		outcomes, results, err := w.trial(ctx, documents)
		if err != nil {
			return err
		}
		again = false
		for _, h := range w.all {
			var kept []*initStep
			for i, step := range h.steps {
				why := w.reached(h, step, outcomes[name(h, i)], results[name(h, i)])
				switch {
				case why != "" && (step.given || step.operation == "CREATE" || !w.flags.answers()):
					w.lacks(h, "%s: %s", step, why)
					continue
				case why != "":
					step.given, again = true, true
				}
				kept = append(kept, step)
			}
			h.steps = kept
		}
	}
	return nil
}

// reached notes what the response to a step shows of the answers of webhooks. It returns why the request does not reach its
// webhook, or "".
func (w *webhookInit) reached(h *initWebhook, step *initStep, outcome report.Outcome, result framework.Result) string {
	at := slices.IndexFunc(result.Trace, func(c framework.Call) bool {
		return c.Webhook == h.fields.Name && c.Phase == h.phase && c.Request()["operation"] == step.operation
	})
	switch {
	case at < 0 && result.Status.Message != "":
		return "it is refused before: " + result.Status.Message
	case at < 0, outcome.Verdict != framework.Pass && !w.flags.answers():
		return report.FirstLine(outcome.Reason)
	case w.flags.answers() && result.Trace[at].Response == nil:
		return "the webhook gives no answer that an API server understands: " + result.Trace[at].Answer
	case w.flags.answers():
		step.answers = answersOf(result, result.Trace[at])
	}
	return ""
}

// verify runs what is written. Of scenarios that do not pass, it removes what can vary, and if they still do not pass, all.
func (w *webhookInit) verify(ctx context.Context) error {
	for {
		documents := w.documents()
		if len(documents) == 0 {
			return nil
		}
		outcomes, _, err := w.trial(ctx, documents)
		if err != nil {
			return err
		}
		changed := false
		for _, h := range w.all {
			outcome := outcomes[h.scenario]
			if len(h.steps) == 0 || outcome.Verdict == framework.Pass {
				continue
			}
			changed = true
			why := report.FirstLine(outcome.Reason)
			if slices.ContainsFunc(h.steps, func(s *initStep) bool { return len(s.answers) > 1 }) {
				w.lacks(h, "its messages, warnings and changes: they are not the same each time: %s", why)
				for _, step := range h.steps {
					step.answers = step.answers[:min(1, len(step.answers))]
				}
				continue
			}
			for _, step := range h.steps {
				w.lacks(h, "%s: the scenario does not pass: %s", step, why)
			}
			h.steps = nil
		}
		if !changed {
			return nil
		}
	}
}

// ofRun matches what is not the same in each run: the name of a namespace; and what begins a placeholder.
var ofRun = regexp.MustCompile(fmt.Sprintf(`at-[a-z0-9]{%d}(-[0-9]{5})?|\$\(`, runid.Len))

// answersOf returns what a response shows of the answers of webhooks, first the code: the message of a denial, the warnings,
// and the fields that a webhook changed, with the values that they have in the response.
func answersOf(result framework.Result, call framework.Call) yaml.MapSlice {
	then := yaml.MapSlice{{Key: "code", Value: result.Status.Code}}
	add := func(key string, value any, has bool) {
		if has {
			then = append(then, yaml.MapItem{Key: key, Value: value})
		}
	}
	if !result.Allowed() {
		message := result.Status.Message
		if _, denial, found := strings.Cut(message, "denied the request: "); found {
			message = denial
		}
		longest := ""
		for _, part := range ofRun.Split(strings.ReplaceAll(message, "\n", "$("), -1) {
			if part = strings.TrimSpace(part); len(part) > len(longest) {
				longest = part
			}
		}
		add("message", longest, longest != "")
	}
	same := !slices.ContainsFunc(result.Warnings, ofRun.MatchString)
	add("warnings", result.Warnings, len(result.Warnings) > 0 && same)
	if result.Allowed() && result.Fields()["kind"] != "Secret" {
		object := changedBy(call, result.Fields())
		text, err := json.Marshal(object)
		add("object", object, len(object) > 0 && err == nil && !ofRun.Match(text))
	}
	return then
}

// changedBy returns the fields of an object that the patch of a call names: lists as a whole.
func changedBy(call framework.Call, object map[string]any) map[string]any {
	changed := map[string]any{}
	operations, _ := call.Response["patch"].([]any)
	for _, operation := range operations {
		fields, _ := operation.(map[string]any)
		pointer, _ := fields["path"].(string)
		var path []string
		for _, step := range strings.Split(pointer, "/")[1:] {
			path = append(path, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
			value, found, err := unstructured.NestedFieldNoCopy(object, path...)
			if _, isMap := value.(map[string]any); isMap && err == nil && len(path) < strings.Count(pointer, "/") {
				continue
			}
			if !found || err != nil {
				value = map[string]any{"$absent": true}
			}
			if fields, isMap := value.(map[string]any); isMap && len(fields) == 0 {
				value = map[string]any{"$exact": fields}
			}
			_ = unstructured.SetNestedField(changed, value, path...) // the steps before are maps, or this one is in what is set
			break
		}
	}
	return changed
}

// serveAll serves webhooks that allow everything, until the context ends. It returns the address, and the certificate.
func serveAll(ctx context.Context) (address string, certificate []byte, err error) {
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv6loopback}, nil)
	if err != nil {
		return "", nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return "", nil, err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		review := struct {
			APIVersion, Kind string
			Request          struct{ UID string }
		}{}
		_ = json.NewDecoder(in.Body).Decode(&review) // without a uid, the API server refuses the answer
		_ = json.NewEncoder(out).Encode(map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind, "response": map[string]any{"uid": review.Request.UID, "allowed": true}})
	})}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	return "https://" + listener.Addr().String(), certificate, nil
}
