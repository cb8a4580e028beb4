package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/progress"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/report"
)

// The environment of a plugin of Sonobuoy: the folder that the worker beside it collects, and the port at which the
// worker takes progress. See https://sonobuoy.io/docs/main/plugins/ and https://sonobuoy.io/docs/main/progress/
const (
	sonobuoyResults = "SONOBUOY_RESULTS_DIR"
	sonobuoyPort    = "SONOBUOY_PROGRESS_PORT"
)

// sonobuoyFlag is the flag --sonobuoy.
type sonobuoyFlag struct{ on bool }

func (f *sonobuoyFlag) add(command *cobra.Command) {
	command.Flags().BoolVar(&f.on, "sonobuoy", false, "in a plugin of Sonobuoy: write the report to a folder in "+sonobuoyResults+", tell Sonobuoy's worker when it is there, and send it the progress at "+sonobuoyPort)
}

// begin makes the folder of the report. It returns what shows the progress of total scenarios to the worker too, and what
// tells the worker that all is written. end must be called whatever becomes of the run, because the worker waits for it.
func (f *sonobuoyFlag) begin(a *app, reportDir *string) (show func(shown progress.Display, total int) progress.Display, end func() error, err error) {
	show, end = func(shown progress.Display, _ int) progress.Display { return shown }, func() error { return nil }
	if !f.on {
		return show, end, nil
	}
	results := a.env(sonobuoyResults)
	switch {
	case *reportDir != "":
		return nil, nil, exit.Usagef("--sonobuoy cannot be combined with --report: its report is in %s", sonobuoyResults)
	case results == "":
		return nil, nil, exit.Usagef("--sonobuoy: %s is not set; Sonobuoy sets it in the pods of its plugins", sonobuoyResults)
	}
	*reportDir = filepath.Join(results, "admissiontest")
	if err := makeReportDir(*reportDir); err != nil {
		return nil, nil, err
	}
	if port := a.env(sonobuoyPort); port != "" {
		show = func(shown progress.Display, total int) progress.Display { return newToWorker(shown, port, total) }
	}
	return show, func() error {
		err := os.WriteFile(filepath.Join(results, "done"), []byte(*reportDir), 0o644) //nolint:gosec // the worker is another container
		if err != nil {
			return fmt.Errorf("tell Sonobuoy's worker that the report is written: %w", err)
		}
		return nil
	}, nil
}

// toWorker is a display that also sends the progress to Sonobuoy's worker: the newest state, one request at a time.
// What the worker says to it changes nothing.
type toWorker struct {
	progress.Display
	url string

	mu     sync.Mutex
	state  workerProgress
	wake   chan struct{} // has an item if state is newer than what was sent
	finish sync.WaitGroup
}

// workerProgress is the body of a request.
type workerProgress struct {
	Message   string   `json:"msg"`
	Total     int      `json:"total"`
	Completed int      `json:"completed"`
	Failures  []string `json:"failures,omitempty"`
}

// sendLimit limits the time of a request to the worker.
const sendLimit = 5 * time.Second

// newToWorker begins to send the progress of total scenarios to the worker at a port.
func newToWorker(shown progress.Display, port string, total int) *toWorker {
	w := &toWorker{Display: shown, url: "http://" + net.JoinHostPort("localhost", port) + "/progress", wake: make(chan struct{}, 1)}
	w.state.Total = total
	w.finish.Go(func() {
		for range w.wake {
			w.mu.Lock()
			body, err := json.Marshal(w.state)
			w.mu.Unlock()
			if err == nil {
				w.send(body)
			}
		}
	})
	return w
}

func (w *toWorker) send(body []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), sendLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return
	}
	request.Header.Set("Content-Type", "application/json")
	if response, err := http.DefaultClient.Do(request); err == nil {
		_ = response.Body.Close()
	}
}

// change changes the state.
func (w *toWorker) change(by func(*workerProgress)) {
	w.mu.Lock()
	by(&w.state)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Stage sends the stage that begins.
func (w *toWorker) Stage(text string) {
	w.Display.Stage(text)
	w.change(func(state *workerProgress) { state.Message = text })
}

// Done sends that a scenario is done.
func (w *toWorker) Done(outcome report.Outcome) {
	w.Display.Done(outcome)
	w.change(func(state *workerProgress) {
		state.Completed++
		switch outcome.Verdict {
		case framework.Fail, framework.Errored, framework.Inconclusive:
			state.Failures = append(state.Failures, outcome.Name)
		}
	})
}

// Close sends the last state.
func (w *toWorker) Close() {
	w.Display.Close()
	close(w.wake)
	w.finish.Wait()
}
