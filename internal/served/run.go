package served

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// stopLimit limits the time in which answers are written after the server ended.
const stopLimit = 5 * time.Second

// Info describes a server that a process serves.
type Info struct {
	// Key is the Key of the server, PID the process that serves it.
	Key string `json:"key"`
	PID int    `json:"pid"`
	// Version is the version of Kubernetes, and Plugins are the plugins that were compiled into it.
	Version string   `json:"version"`
	Plugins []string `json:"plugins,omitempty"`
	// Since is when the process began.
	Since time.Time `json:"since"`
	// State is one of the State constants.
	State string `json:"state"`
	// KubeConfig is the content of a kubeconfig file. Empty while the server starts.
	KubeConfig []byte `json:"kubeConfig,omitempty"`
}

// The values of Info.State.
const (
	StateStarting = "starting"
	StateFree     = "free"
	StateInUse    = "in use"
	StateEnding   = "ending"
)

// hello is the first line of a session. Each later line is a list of audit events, but the last one is
// ended if the API server ended by itself.
type hello struct {
	KubeConfig      []byte   `json:"kubeConfig"`
	HookPort        int      `json:"hookPort"`
	ObservesPlugins bool     `json:"observesPlugins"`
	Plugins         []string `json:"plugins,omitempty"`
}

// ended says why the API server ended by itself.
type ended struct {
	Why string `json:"apiServerEnded"`
}

// RunOptions configure Run. Key, Options and Idle are required.
type RunOptions struct {
	Options
	Place Place
	Key   string
	// Idle is how long no run may use the server before Run ends.
	Idle time.Duration
	// Ready is called when runs can use the server.
	Ready func(Info)
}

// RunningError means that another process serves the key.
type RunningError struct{ Info Info }

// Error says which process it is.
func (e *RunningError) Error() string {
	return fmt.Sprintf("process %d serves this API server already (%s)", e.Info.PID, e.Info.State)
}

// Run starts a server, and offers it to the runs of this user until no run used it for some time, or a
// process asked to stop it: then the error is nil. The other errors are a *RunningError, the
// cause of ctx, and that of a server that did not start or ended by itself.
func Run(ctx context.Context, options RunOptions) error {
	listener, err := options.Place.listen(ctx, options.Key)
	if errors.Is(err, errRunning) {
		if info, asked := options.Place.info(ctx, options.Key); asked == nil {
			return &RunningError{info}
		}
	}
	if err != nil {
		return fmt.Errorf("serve an API server: %w", err)
	}
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	o := &offer{options: options, since: time.Now(), stop: func() { stop(errStopped) }, ended: make(chan struct{})}
	web := &http.Server{Handler: o.handler(), ReadHeaderTimeout: stopLimit, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = web.Serve(listener) }() // it removes the socket when it ends
	err = o.run(running)
	close(o.ended) // answers those who asked to stop
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	if late := web.Shutdown(limited); late != nil {
		err = errors.Join(err, web.Close())
	}
	if errors.Is(err, errStopped) {
		err = nil
	}
	if dir, unusable := options.Place.dir(); err == nil && unusable == nil {
		_ = os.Remove(filepath.Join(dir, options.Key+logSuffix)) // often there is none
	}
	return err
}

// errStopped is the cause of the end if a process asked for it.
var errStopped = errors.New("stopped")

// offer is a server that other processes can use.
type offer struct {
	options RunOptions
	since   time.Time
	stop    func()
	ended   chan struct{}

	mu     sync.Mutex
	server *Server // nil before it is ready
}

// run starts the server and returns when it ended.
func (o *offer) run(ctx context.Context) error {
	server, err := Start(ctx, o.options.Options)
	if err != nil {
		return err
	}
	o.mu.Lock()
	o.server = server
	o.mu.Unlock()
	if o.options.Ready != nil {
		o.options.Ready(o.info())
	}
	err = server.idle(ctx, o.options.Idle)
	return errors.Join(err, server.Stop())
}

func (o *offer) info() Info {
	info := Info{
		Key: o.options.Key, PID: os.Getpid(), Since: o.since, State: StateStarting,
		Version: o.options.Assets.Version, Plugins: o.options.Assets.Plugins,
	}
	if server := o.ready(); server != nil {
		info.State, info.KubeConfig = server.state(), server.api.KubeConfig
	}
	return info
}

// ready returns the server, or nil if it is not ready.
func (o *offer) ready() *Server {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.server
}

// The paths of requests.
const (
	infoPath = "/info"
	usePath  = "/use"
	stopPath = "/stop"
)

func (o *offer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+infoPath, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(o.info()) })
	mux.HandleFunc("POST "+usePath, o.use)
	mux.HandleFunc("POST "+stopPath, func(http.ResponseWriter, *http.Request) {
		o.stop()
		<-o.ended
	})
	return mux
}

// use is a Session: it lasts as long as the connection.
func (o *offer) use(w http.ResponseWriter, r *http.Request) {
	server := o.ready()
	if server == nil {
		http.Error(w, "the server is not ready yet", http.StatusServiceUnavailable)
		return
	}
	stream := &stream{w: w}
	defer stream.close()
	session, err := server.use(r.Context(), user{deliver: stream.events, alive: stream.alive})
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	defer session.Close()
	stream.write(hello{session.KubeConfig, session.HookPort, session.ObservesPlugins, session.Plugins})
	select {
	case <-r.Context().Done():
	case <-o.ended:
	case <-session.Ended():
	}
	stream.end(session.Err())
}

// stream writes a session to another process.
type stream struct {
	mu     sync.Mutex
	w      http.ResponseWriter
	begun  bool
	closed bool
}

// write writes the first line.
func (s *stream) write(first hello) {
	line, err := json.Marshal(first)
	if err != nil {
		return // it has no type that JSON has not
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = true
	_ = s.line(line) // the context of the request ends if the other process is gone
}

// events writes a list of audit events. Those before the first line are of other clients.
func (s *stream) events(eventList []byte) {
	var compact bytes.Buffer
	if json.Compact(&compact, eventList) != nil {
		return // the API server wrote it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.line(compact.Bytes())
}

// end writes why the API server ended by itself.
func (s *stream) end(why error) {
	if why == nil {
		return
	}
	line, err := json.Marshal(ended{why.Error()})
	if err != nil {
		return // it has no type that JSON has not
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.line(line)
}

// alive writes an empty list of events. If the other process was killed, that fails, even if the end of
// the connection is not known here yet.
func (s *stream) alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && s.line([]byte("{}")) == nil
}

// close ends the stream. The writer is not used any more.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

func (s *stream) line(text []byte) error {
	if s.closed || !s.begun {
		return nil
	}
	_, err := s.w.Write(append(text, '\n'))
	return errors.Join(err, http.NewResponseController(s.w).Flush())
}
