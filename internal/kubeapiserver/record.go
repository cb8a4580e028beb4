package kubeapiserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Variable is the environment variable that turns on the recording of the calls of plugins in a
// kube-apiserver that admissiontest built. Every value except the empty string turns it on.
// Kubernetes has no variable of this name.
const Variable = "ADMISSIONTEST_OBSERVE_PLUGINS"

// Prefix is the first part of the key of each annotation with a record. The second part is the
// number of the call in the process. So the keys of one request differ, and their order is that of
// the calls.
const Prefix = "plugins.admissiontest.dev/"

// Key returns the key of the record of a call.
func Key(number uint64) string { return fmt.Sprintf("%s%016d", Prefix, number) }

// Record is one call of a plugin.
type Record struct {
	// Plugin is the name of the plugin, Position its number in the order of the plugins.
	Plugin   string `json:"plugin"`
	Position int    `json:"position"`
	// Phase is "mutating" or "validating". Round is 1 in the second pass of the mutating
	// phase, otherwise 0.
	Phase string `json:"phase"`
	Round int    `json:"round,omitempty"`
	// Operation, Resource ("deployments.apps"), Subresource, Namespace and Name are copies of
	// the attributes.
	Operation   string `json:"operation"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	// Changed are the paths of the fields of the object that the call changed, in the JSON form
	// of the version of the request: `metadata.labels["example.com/x"]`. More is the number of
	// paths above the limit. NotComparable is why the object could not be compared.
	Changed       []string `json:"changed,omitempty"`
	More          int      `json:"more,omitempty"`
	NotComparable string   `json:"notComparable,omitempty"`
	// Refused is the refusal. Panicked is the value of a panic, with
	// function, file and line.
	Refused  *Refusal `json:"refused,omitempty"`
	Panicked string   `json:"panicked,omitempty"`
	// Started is the time of the call, in nanoseconds since 1970, and Duration its length in
	// nanoseconds.
	Started  int64         `json:"started"`
	Duration time.Duration `json:"duration"`
	// Unhandled is only set in the record of the first plugin of each pass: the plugins of the
	// phase that the pass does not call, because they do not handle the operation.
	Unhandled []Unhandled `json:"unhandled,omitempty"`
}

// Refusal is the error of a plugin, as the client gets it.
type Refusal struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message"`
}

// Unhandled is a plugin that does not handle an operation.
type Unhandled struct {
	Plugin   string `json:"plugin"`
	Position int    `json:"position"`
}

// Take removes the records from the annotations of an audit event and returns them in the order
// in which the calls began. Nested calls are not possible: a plugin does not call another one.
func Take(annotations map[string]string) ([]Record, error) {
	var records []Record
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if !strings.HasPrefix(key, Prefix) {
			continue
		}
		var r Record
		if err := json.Unmarshal([]byte(annotations[key]), &r); err != nil {
			return nil, fmt.Errorf("read the record of a plugin's call %s: %w", key, err)
		}
		records = append(records, r)
		delete(annotations, key)
	}
	return records, nil
}
