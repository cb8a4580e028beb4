// Package bystander is somebody else's client of a cluster, for tests that
// scenarios disturb nobody: it makes, changes and removes objects of the kinds
// that scenarios are about, in namespaces of its own and cluster-scoped, and says
// what became of its requests.
//
// # Promise
//
// Every request counts, none is repeated. An object that comes back is compared
// with what came back for the same object in [Bystander.Learn], before any
// scenario ran. Names of all objects begin with Prefix, and Close removes them.
//
// # Not promised
//
// Objects are compared without what differs by nature from one creation to the
// next: versions, UIDs, times, addresses.
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

// Prefix begins the names of everything of a bystander, and occurs in nobody
// else's.
const Prefix = "bystander"

// Bystander is a client. New makes one.
type Bystander struct {
	client     *http.Client
	base       *url.URL
	namespaces []string
	id         string // in every name, so that nobody's leftovers are in the way

	mu sync.Mutex
	// baseline is what came back by kind of request, before any scenario.
	baseline map[string]any
	report   Report
	// lives is how many objects there were: no name is used twice.
	lives int
}

// Report is what became of requests. Durations has one for each.
type Report struct {
	// Failed are requests that were refused or not answered, Changed those whose
	// answer is not what it was in Learn, a line each.
	Failed, Changed []string
	Durations       []time.Duration
	// Objects is how many were written.
	Objects int
}

// Median returns the median duration, or 0 of none.
func (r Report) Median() time.Duration {
	if len(r.Durations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(r.Durations))
	return sorted[len(sorted)/2]
}

// Longest returns the longest duration, or 0 of none.
func (r Report) Longest() time.Duration {
	if len(r.Durations) == 0 {
		return 0
	}
	return slices.Max(r.Durations)
}

// Check returns an error that says what was wrong, or nil.
func (r Report) Check() error {
	var errs []error
	for what, lines := range map[string][]string{"failed": r.Failed, "changed": r.Changed} {
		if len(lines) > 0 {
			errs = append(errs, fmt.Errorf("%d of %d requests of the bystander %s, the first: %s", len(lines), len(r.Durations), what, lines[0]))
		}
	}
	return errors.Join(errs...)
}

// New makes a client with two namespaces of its own, in which a ServiceAccount for
// pods exists whoever makes it.
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

// Learn sends each kind of request once, to know what comes back undisturbed. It
// returns the first error.
func (b *Bystander) Learn(ctx context.Context) error {
	for _, one := range kinds() {
		b.life(ctx, one, true)
	}
	learnt := b.Take()
	return errors.Join(learnt.Check())
}

// Write writes objects of all kinds in turn, a few at a time, each of which it
// changes, reads and removes again, until so many are written or ctx is done.
func (b *Bystander) Write(ctx context.Context, objects, parallel int) {
	all := kinds()
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for n := range numbers {
				b.life(ctx, all[n%len(all)], false)
			}
		})
	}
	for n := 0; n < objects && ctx.Err() == nil; n++ {
		numbers <- n
	}
	close(numbers)
	workers.Wait()
}

// Take returns the report of all requests since the last Take.
func (b *Bystander) Take() Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	report := b.report
	b.report = Report{}
	return report
}

// Close removes the namespaces.
func (b *Bystander) Close(ctx context.Context) error {
	var errs []error
	for _, name := range b.namespaces {
		_, err := b.send(ctx, http.MethodDelete, "/api/v1/namespaces/"+name, nil)
		errs = append(errs, err)
	}
	b.client.CloseIdleConnections()
	return errors.Join(errs...)
}

// life is the life of one object: created dry-run, created, changed, read, and
// deleted.
func (b *Bystander) life(ctx context.Context, one kind, learn bool) {
	b.mu.Lock()
	b.lives++
	number := b.lives
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
	for _, step := range steps {
		if ctx.Err() != nil && step.what != "delete" {
			continue
		}
		began := time.Now()
		got, err := b.send(context.WithoutCancel(ctx), step.method, step.path, step.body)
		b.note(outcome{key: one.path + " " + step.what, name: name, took: time.Since(began), got: got, err: err, learn: learn})
		if err != nil {
			return
		}
	}
	b.mu.Lock()
	b.report.Objects++
	b.mu.Unlock()
}

// outcome is what became of one request.
type outcome struct {
	key, name string
	took      time.Duration
	got       map[string]any
	err       error
	learn     bool
}

func (b *Bystander) note(o outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.report.Durations = append(b.report.Durations, o.took)
	if o.err != nil {
		b.report.Failed = append(b.report.Failed, fmt.Sprintf("%s %s after %s: %v", o.key, o.name, o.took.Round(time.Millisecond), o.err))
		return
	}
	if strings.HasSuffix(o.key, " delete") {
		return // the answer is a Status or an object on its way
	}
	got := constant(o.got, o.name)
	if o.learn {
		b.baseline[o.key] = got
		return
	}
	if want := b.baseline[o.key]; !reflect.DeepEqual(want, got) {
		b.report.Changed = append(b.report.Changed, fmt.Sprintf("%s %s: got %v, want %v", o.key, o.name, got, want))
	}
}

// constant returns what does not differ from one creation to the next.
func constant(object map[string]any, name string) map[string]any {
	data, _ := json.Marshal(object)
	var out map[string]any
	_ = json.Unmarshal(bytes.ReplaceAll(data, []byte(name), []byte("NAME")), &out)
	metadata, _ := out["metadata"].(map[string]any)
	maps.DeleteFunc(metadata, func(key string, _ any) bool {
		return slices.Contains([]string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "namespace"}, key)
	})
	delete(out, "status") // controllers' own
	spec, _ := out["spec"].(map[string]any)
	for _, key := range []string{"clusterIP", "clusterIPs", "nodeName"} {
		delete(spec, key)
	}
	dropTokens(spec)
	return out
}

// dropTokens removes the name that a pod's volume of tokens gets at random.
func dropTokens(spec map[string]any) {
	volumes, _ := spec["volumes"].([]any)
	for _, item := range volumes {
		if volume, ok := item.(map[string]any); ok {
			delete(volume, "name")
		}
	}
	containers, _ := spec["containers"].([]any)
	for _, item := range containers {
		container, _ := item.(map[string]any)
		mounts, _ := container["volumeMounts"].([]any)
		for _, item := range mounts {
			if mount, ok := item.(map[string]any); ok {
				delete(mount, "name")
			}
		}
	}
}

// requestLimit bounds one request: far beyond the timeout of a webhook.
const requestLimit = time.Minute

// send sends one request; an answer that is no success is an error.
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
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if warnings := response.Header.Values("Warning"); len(warnings) > 0 {
		return nil, fmt.Errorf("%s %s: a warning: %s", method, path, warnings[0])
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, answer)
	}
	var out map[string]any
	return out, json.Unmarshal(answer, &out)
}
