package cli

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/progress"
	"github.com/admissiontest/admissiontest/internal/report"
)

// worker takes progress, as Sonobuoy's worker does, once ready is closed.
type worker struct {
	ready chan struct{}

	mu   sync.Mutex
	last workerProgress
	got  int
}

func (w *worker) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	<-w.ready
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Method == http.MethodPost && r.URL.Path == "/progress" && json.NewDecoder(r.Body).Decode(&w.last) == nil {
		w.got++
	}
}

// A worker of Sonobuoy waits for the file "done", which names the report: it is written whatever becomes of the run. The last progress has all
// scenarios. A worker that does not listen changes nothing.
func TestSonobuoy(t *testing.T) {
	dir := write(t, map[string]string{"good.yaml": scenarioFile("mine.a", "MUST", "fine"), "bad.yaml": scenarioFile("mine.b", "MUST", "refused"), "broken.yaml": "kind: [\n"})
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	for name, test := range map[string]struct {
		args       []string
		code, runs int
		failures   string
		deaf       bool
	}{
		"pass":                       {args: []string{good}, code: exit.Pass, runs: 1},
		"fail":                       {args: []string{good, bad}, code: exit.Fail, runs: 2, failures: "mine.b"},
		"no worker":                  {args: []string{good, bad}, code: exit.Fail, runs: 2, deaf: true},
		"a scenario that is no YAML": {args: []string{filepath.Join(dir, "broken.yaml")}, code: exit.Usage},
	} {
		t.Run(name, func(t *testing.T) {
			listening := worker{ready: make(chan struct{})}
			close(listening.ready)
			server := httptest.NewServer(&listening)
			defer server.Close()
			if test.deaf {
				server.Close()
			}
			_, port, err := net.SplitHostPort(server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			results := t.TempDir()
			inPlugin(t.Context(), []string{"SONOBUOY_RESULTS_DIR=" + results, "SONOBUOY_PROGRESS_PORT=" + port}, &fake{}, test.args...).check(t, test.code)
			named, err := os.ReadFile(filepath.Join(results, "done"))
			if err != nil || string(named) != filepath.Join(results, "admissiontest") {
				t.Fatalf("done names %q, %v; want the folder admissiontest", named, err)
			}
			if test.runs > 0 {
				r, err := report.Read(string(named))
				if err != nil || r.Summary.Total != test.runs {
					t.Errorf("got a report of %d scenarios, %v; want %d", r.Summary.Total, err, test.runs)
				}
			}
			listening.mu.Lock()
			defer listening.mu.Unlock()
			if last := listening.last; !test.deaf && (last.Total != test.runs || last.Completed != test.runs || strings.Join(last.Failures, " ") != test.failures) {
				t.Errorf("the last progress is %+v, want %d scenarios and the failures %q", last, test.runs, test.failures)
			}
		})
	}
}

// readies makes a worker ready when it closes.
type readies struct {
	progress.Display
	worker *worker
}

func (r readies) Done(report.Outcome) {}
func (r readies) Close()              { close(r.worker.ready) }

// The end of the progress waits until a slow worker has the last of it.
func TestSonobuoyWaitsForTheWorker(t *testing.T) {
	listening := worker{ready: make(chan struct{})}
	server := httptest.NewServer(&listening)
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	shown := newToWorker(readies{worker: &listening}, port, 2)
	shown.Done(report.Outcome{Name: "a"})
	shown.Done(report.Outcome{Name: "b"})
	shown.Close()
	listening.mu.Lock()
	defer listening.mu.Unlock()
	if listening.last.Completed != 2 {
		t.Errorf("the last progress has %d scenarios, want 2", listening.last.Completed)
	}
}

func inPlugin(ctx context.Context, env []string, on *fake, args ...string) result {
	var stdout, stderr safe
	a := &app{Process: Process{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Env: env}, catalogue: fixture(), provider: on}
	code := a.main(ctx, append([]string{"run", "--sonobuoy"}, args...))
	return result{code, stdout.String(), stderr.String()}
}

// Outside a plugin of Sonobuoy, and with flags that do not go together, the flag is a usage error.
func TestSonobuoyUsage(t *testing.T) {
	good := write(t, map[string]string{"good.yaml": scenarioFile("mine.a", "MUST", "fine")})
	env := []string{"SONOBUOY_RESULTS_DIR=" + t.TempDir()}
	inPlugin(t.Context(), nil, &fake{}, good).check(t, exit.Usage, "SONOBUOY_RESULTS_DIR is not set")
	inPlugin(t.Context(), env, &fake{}, good, "--report", "out").check(t, exit.Usage, "cannot be combined with --report")
	inPlugin(t.Context(), env, &fake{}, good, "--target", "envtest").check(t, exit.Usage, "--sonobuoy cannot be combined with --target envtest")
	inPlugin(t.Context(), env, &fake{}, good, "--watch").check(t, exit.Usage, "--watch cannot be combined with --sonobuoy")
}

// The plugin definition in deploy has a container with flags that the command has, which mounts the results.
func TestSonobuoyPlugin(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(deployed("sonobuoy"), "plugin.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var plugin struct {
		Config map[string]any   `json:"sonobuoy-config"`
		Spec   corev1.Container `json:"spec"`
		Extra  []corev1.Volume  `json:"extra-volumes"`
	}
	if err := yaml.UnmarshalStrict(content, &plugin); err != nil {
		t.Fatal(err)
	}
	checkArguments(t, plugin.Spec)
	if mounts := plugin.Spec.VolumeMounts; len(mounts) != 2 || mounts[1].Name != "results" || len(plugin.Extra) != 1 || mounts[0].Name != plugin.Extra[0].Name || plugin.Config["result-format"] != "junit" {
		t.Errorf("got the volumes %v and the results %v", mounts, plugin.Config)
	}
}
