package served

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/framework/cluster/envtest"
)

// findLimit limits the wait for a process that does not answer, and for a server to be free of what the
// last run left.
const findLimit = 15 * time.Second

// Find begins a Session on the server of a key, if a process serves it. If none does, it returns nil. An
// error says why the server cannot be used: it is an ErrInUse, for instance.
func (p Place) Find(ctx context.Context, key string) (*Session, error) {
	client, err := p.client(ctx, key)
	if err != nil || client == nil {
		return nil, err
	}
	using, stop := context.WithCancel(context.WithoutCancel(ctx))
	timer := time.AfterFunc(findLimit, stop)
	unwatch := context.AfterFunc(ctx, stop)
	session, err := use(using, client)
	timer.Stop()
	unwatch()
	if err != nil {
		stop()
		client.CloseIdleConnections()
		return nil, err
	}
	ended := session.end
	session.end = sync.OnceFunc(func() {
		stop()
		ended()
		client.CloseIdleConnections()
	})
	return session, nil
}

// use asks for a Session. It lasts until ctx ends.
func use(ctx context.Context, client *http.Client) (*Session, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://served"+usePath, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request) //nolint:bodyclose // the goroutine below closes it
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		return nil, errors.Join(errors.New(strings.TrimSpace(string(text))), err)
	}
	lines := bufio.NewReader(response.Body)
	var first hello
	line, err := lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &first)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the first line of a served API server: %w", err), response.Body.Close())
	}
	session := &Session{
		KubeConfig: first.KubeConfig, HookPort: first.HookPort, ObservesPlugins: first.ObservesPlugins, Plugins: first.Plugins, Audit: &envtest.Audit{},
	}
	if session.Config, err = clientConfig(first.KubeConfig); err != nil {
		return nil, errors.Join(err, response.Body.Close())
	}
	end := &endOfStream{done: make(chan struct{})}
	go func() {
		defer close(end.done)
		defer func() { _ = response.Body.Close() }()
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return // the Session ended
			}
			var last ended
			if bytes.HasPrefix(line, []byte(`{"apiServerEnded":`)) && json.Unmarshal(line, &last) == nil {
				end.why = errors.New(last.Why)
				return
			}
			_ = session.Audit.Add(line)
		}
	}()
	session.server, session.end = end, func() { <-end.done }
	return session, nil
}

// endOfStream is the end of an API server that another process serves.
type endOfStream struct {
	done chan struct{} // closed at the end
	why  error         // valid after that
}

// Ended returns a channel that is closed at the end.
func (e *endOfStream) Ended() <-chan struct{} { return e.done }

// Err returns why the API server ended by itself, or nil.
func (e *endOfStream) Err() error {
	select {
	case <-e.done:
		return e.why
	default:
		return nil
	}
}

// client returns a client of the process that serves a key, or nil if there is none. It removes a
// socket that a killed process left.
func (p Place) client(ctx context.Context, key string) (*http.Client, error) {
	dir, err := p.dir()
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, key+socketSuffix)
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var answered bool
	err = locked(ctx, dir, func() error {
		answered, err = removeStale(ctx, path)
		return err
	})
	if err != nil || !answered {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}, nil
}

// info asks the process that serves a key. The error is an os.ErrNotExist if there is none.
func (p Place) info(ctx context.Context, key string) (Info, error) {
	var info Info
	err := p.ask(ctx, key, http.MethodGet, infoPath, &info)
	return info, err
}

// List returns the servers that processes of this user serve. The error names those that do not
// answer.
func (p Place) List(ctx context.Context) ([]Info, error) {
	_, keys, err := p.keys()
	if err != nil {
		return nil, err
	}
	var all []Info
	var errs []error
	for _, key := range keys {
		info, err := p.info(ctx, key)
		switch {
		case err == nil:
			all = append(all, info)
		case !errors.Is(err, os.ErrNotExist):
			errs = append(errs, fmt.Errorf("ask the server %s: %w", key, err))
		}
	}
	return all, errors.Join(errs...)
}

// Stop stops the server of a key, and returns when it has ended.
func (p Place) Stop(ctx context.Context, key string) error {
	if err := p.ask(ctx, key, http.MethodPost, stopPath, nil); err != nil {
		return fmt.Errorf("stop the server %s: %w", key, err)
	}
	return nil
}

// ask sends a request to the process that serves a key.
func (p Place) ask(ctx context.Context, key, method, path string, into any) error {
	client, err := p.client(ctx, key)
	if err != nil {
		return err
	}
	if client == nil {
		return os.ErrNotExist
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, 2*findLimit) // stopping an API server takes some seconds
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://served"+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if into == nil {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	return json.NewDecoder(response.Body).Decode(into)
}
