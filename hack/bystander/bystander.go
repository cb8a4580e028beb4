// Package bystander simulates another client of a cluster, for tests that scenarios do not
// disturb other clients. It creates, changes, reads and deletes objects of the kinds that
// scenarios use, in its own namespaces and cluster-scoped, and reports the outcome of its
// requests.
//
// # Promise
//
// All requests count, and none is repeated. The response to each request is compared with the
// response to the same request in [Bystander.Learn], before any scenario ran. The names of all
// objects have the prefix Prefix, and Close removes them.
//
// # Not promised
//
// Fields that differ from one creation to the next, such as versions, UIDs, times and
// addresses, are not compared.
package bystander

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Prefix is the prefix of the names of all objects of a bystander. No other object has it.
const Prefix = "bystander"

// Bystander is a client. Use New to create one.
type Bystander struct {
	client     *http.Client
	base       *url.URL
	namespaces []string
	id         string // in all names, so that objects of an earlier test do not conflict

	mu sync.Mutex
	// baseline has the responses of Learn, by kind of request.
	baseline map[string]any
	report   Report
	// created is the number of objects so far: no name is used twice.
	created int
}

// Report is the outcome of requests.
type Report struct {
	// Failed has a line for each request that was refused, had no response, or had a
	// warning in its response.
	Failed []string
	// Changed has a line for each request whose response differs from that in Learn.
	Changed []string
	// Durations has the duration of each request.
	Durations []time.Duration
	// Objects is the number of objects that were created and deleted without an error.
	Objects int
}

// Median returns the median of the durations, or 0 if there are none.
func (r Report) Median() time.Duration {
	if len(r.Durations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(r.Durations))
	return sorted[len(sorted)/2]
}

// Longest returns the longest duration, or 0 if there are none.
func (r Report) Longest() time.Duration {
	if len(r.Durations) == 0 {
		return 0
	}
	return slices.Max(r.Durations)
}

// Check returns an error if requests failed or changed, with the first of each.
func (r Report) Check() error {
	var errs []error
	for what, lines := range map[string][]string{"failed": r.Failed, "changed": r.Changed} {
		if len(lines) > 0 {
			errs = append(errs, fmt.Errorf("%d of %d requests of the bystander %s, the first: %s", len(lines), len(r.Durations), what, lines[0]))
		}
	}
	return errors.Join(errs...)
}

// New creates a client with two namespaces. Each gets a ServiceAccount for pods, unless a
// controller creates it first.
func New(ctx context.Context, config *rest.Config) (*Bystander, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	id := strings.ToLower(rand.Text()[:5])
	b := &Bystander{client: client, base: base, namespaces: []string{Prefix + "-a-" + id, Prefix + "-b-" + id}, id: id, baseline: map[string]any{}}
	for _, name := range b.namespaces {
		object := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}
		if _, err := b.send(ctx, http.MethodPost, "/api/v1/namespaces", object); err != nil {
			return nil, err
		}
		account := map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "default"}}
		_, err := b.send(ctx, http.MethodPost, "/api/v1/namespaces/"+name+"/serviceaccounts", account)
		if err != nil && !strings.Contains(err.Error(), "AlreadyExists") {
			return nil, err
		}
	}
	return b, nil
}

// Learn sends each kind of request once and keeps the responses for later comparisons. Call it
// while no other client disturbs the cluster. It returns an error if a request failed.
func (b *Bystander) Learn(ctx context.Context) error {
	for _, one := range kinds() {
		b.writeOne(ctx, one, true)
	}
	return b.Take().Check()
}

// Write creates objects of all kinds in turn, and changes, reads and deletes each. It ends
// after so many objects, or when ctx ends. parallel is the number of objects at a time.
func (b *Bystander) Write(ctx context.Context, objects, parallel int) {
	all := kinds()
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for n := range numbers {
				b.writeOne(ctx, all[n%len(all)], false)
			}
		})
	}
	for n := 0; n < objects && ctx.Err() == nil; n++ {
		numbers <- n
	}
	close(numbers)
	workers.Wait()
}

// Take returns the report of all requests since the last call of Take.
func (b *Bystander) Take() Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	report := b.report
	b.report = Report{}
	return report
}

// Close deletes the namespaces.
func (b *Bystander) Close(ctx context.Context) error {
	var errs []error
	for _, name := range b.namespaces {
		_, err := b.send(ctx, http.MethodDelete, "/api/v1/namespaces/"+name, nil)
		errs = append(errs, err)
	}
	b.client.CloseIdleConnections()
	return errors.Join(errs...)
}

// writeOne creates one object as a dry run and then really, changes, reads and deletes it. It
// stops at the first error. If ctx ends, it only deletes the object, if it was created.
func (b *Bystander) writeOne(ctx context.Context, one kind, learn bool) {
	b.mu.Lock()
	b.created++
	number := b.created
	b.mu.Unlock()
	name := fmt.Sprintf("%s-%s-n%d", Prefix, b.id, number)
	path := one.path
	if one.namespaced {
		path = strings.Replace(path, "NAMESPACE", b.namespaces[number%len(b.namespaces)], 1)
	}
	object := one.object(name)
	steps := []struct {
		what, method, path string
		body               map[string]any
	}{
		{"dry-run", http.MethodPost, path + "?dryRun=All", object},
		{"create", http.MethodPost, path, object},
		{"patch", http.MethodPatch, path + "/" + name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"changed": "yes"}}}},
		{"get", http.MethodGet, path + "/" + name, nil},
		{"delete", http.MethodDelete, path + "/" + name, nil},
	}
	created := false
	for _, step := range steps {
		if ctx.Err() != nil && (step.what != "delete" || !created) {
			continue
		}
		began := time.Now()
		got, err := b.send(context.WithoutCancel(ctx), step.method, step.path, step.body)
		b.record(outcome{key: one.path + " " + step.what, name: name, took: time.Since(began), got: got, err: err, learn: learn})
		if err != nil {
			return
		}
		created = created || step.what == "create"
	}
	if created {
		b.mu.Lock()
		b.report.Objects++
		b.mu.Unlock()
	}
}

// outcome is the outcome of one request.
type outcome struct {
	key, name string
	took      time.Duration
	got       map[string]any
	err       error
	learn     bool
}

func (b *Bystander) record(o outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.report.Durations = append(b.report.Durations, o.took)
	if o.err != nil {
		b.report.Failed = append(b.report.Failed, fmt.Sprintf("%s %s after %s: %v", o.key, o.name, o.took.Round(time.Millisecond), o.err))
		return
	}
	if strings.HasSuffix(o.key, " delete") {
		return // the response is a Status, or an object that is being deleted
	}
	got := comparableFields(o.got, o.name)
	if o.learn {
		b.baseline[o.key] = got
		return
	}
	if want := b.baseline[o.key]; !reflect.DeepEqual(want, got) {
		b.report.Changed = append(b.report.Changed, fmt.Sprintf("%s %s: got %v, want %v", o.key, o.name, got, want))
	}
}

// comparableFields returns an object without the fields that differ from one creation to the next.
func comparableFields(object map[string]any, name string) map[string]any {
	data, _ := json.Marshal(object)
	var out map[string]any
	_ = json.Unmarshal(bytes.ReplaceAll(data, []byte(name), []byte("NAME")), &out)
	metadata, _ := out["metadata"].(map[string]any)
	maps.DeleteFunc(metadata, func(key string, _ any) bool {
		return slices.Contains([]string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "namespace"}, key)
	})
	delete(out, "status") // controllers write it
	spec, _ := out["spec"].(map[string]any)
	for _, key := range []string{"clusterIP", "clusterIPs", "nodeName"} {
		delete(spec, key)
	}
	return out
}

// requestLimit is the limit of one request. It is longer than the timeout of any webhook.
const requestLimit = time.Minute

// send sends one request. If the response is not a success or has a warning, it returns an
// error.
func (b *Bystander) send(ctx context.Context, method, path string, body map[string]any) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	var data []byte
	if body != nil {
		data, _ = json.Marshal(body)
	}
	path, query, _ := strings.Cut(path, "?")
	target := b.base.JoinPath(path)
	target.RawQuery = query
	request, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	request.Header.Set("User-Agent", Prefix)
	response, err := b.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if warnings := response.Header.Values("Warning"); len(warnings) > 0 {
		return nil, fmt.Errorf("%s %s: got a warning, want none: %s", method, path, warnings[0])
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, content)
	}
	var out map[string]any
	return out, json.Unmarshal(content, &out)
}
