package testserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/envtest"
)

// state is what an API server has stored at one moment, by key of etcd, except what it keeps about itself.
type state map[string]string

// aboutItself returns the prefixes of the keys that kube-apiserver renews: the addresses and Leases of its replicas, and, each five
// minutes, the revision up to which it compacted etcd. Without that key it panics (k8s.io/apiserver/pkg/storage/etcd3/compact.go).
func aboutItself() []string {
	return []string{"/registry/masterleases/", "/registry/peerserverleases/", "/registry/leases/kube-system/apiserver-", "compact_rev_key"}
}

// storage is the etcd of an API server.
type storage struct{ client *http.Client }

// storageOf returns the etcd of an API server. It listens on a Unix socket.
func storageOf(server *envtest.Server) storage {
	socket := server.Environment.ControlPlane.Etcd.URL.Path
	return storage{&http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}}
}

// state returns what the API server has stored.
func (s storage) state(ctx context.Context) (state, error) {
	var answer struct {
		KVs []struct {
			Key   []byte `json:"key"`
			Value []byte `json:"value"`
		} `json:"kvs"`
	}
	// The key 0 to the key 0 is every key.
	all := map[string]any{"key": []byte{0}, "range_end": []byte{0}}
	if err := s.call(ctx, "range", all, &answer); err != nil {
		return nil, fmt.Errorf("read the state of the API server: %w", err)
	}
	found := make(state, len(answer.KVs))
	for _, kv := range answer.KVs {
		key := string(kv.Key)
		if !slices.ContainsFunc(aboutItself(), func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			found[key] = string(kv.Value)
		}
	}
	return found, nil
}

// restore makes what the API server has stored equal to a state. It writes to etcd directly: admission,
// finalizers and owner references have no effect. It returns the keys of etcd that it changed, such as
// "/registry/configmaps/default/a". The API server sees the changes like writes of another replica.
// So shortly after restore it can still act on an object that no longer exists: a webhook
// configuration for milliseconds, a policy for a second.
func (s storage) restore(ctx context.Context, wanted state) ([]string, error) {
	now, err := s.state(ctx)
	if err != nil {
		return nil, err
	}
	var changed []string
	// Each change is a revision of etcd: a client that watches continues behind the last revision that it has seen.
	change := func(method, key string, parameters map[string]any) {
		changed = append(changed, key)
		err = errors.Join(err, s.call(ctx, method, parameters, &struct{}{}))
	}
	for key := range now {
		if _, had := wanted[key]; !had {
			change("deleterange", key, map[string]any{"key": []byte(key)})
		}
	}
	for key, value := range wanted {
		if got, has := now[key]; !has || got != value {
			change("put", key, map[string]any{"key": []byte(key), "value": []byte(value)})
		}
	}
	if err != nil {
		return changed, fmt.Errorf("restore the state of the API server: %w", err)
	}
	slices.Sort(changed)
	return changed, nil
}

// call calls a method of etcd's service KV by its JSON gateway
// (https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/).
func (s storage) call(ctx context.Context, method string, parameters, into any) error {
	body, err := json.Marshal(parameters)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd/v3/kv/"+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("call %s of etcd: got status %s, want 200: %s", method, response.Status, strings.TrimSpace(string(answer)))
	}
	return json.Unmarshal(answer, into)
}
