package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/internal/report"
)

// measured is what one execution of the command took.
type measured struct {
	stdout []byte
	wall   time.Duration
	// peak is the largest resident size of the process itself in MiB, without the
	// API server that it starts; 0 where the system does not tell.
	peak float64
}

// sampling is how often a process is asked for its memory. What it answers is a
// high-water mark, so only growth within the last interval is missed.
const sampling = 10 * time.Millisecond

// execute runs the command and waits for it.
func (b *bench) execute(ctx context.Context, args ...string) (measured, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, b.command, args...)
	command.Stdout, command.Stderr = &stdout, &stderr
	command.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+b.assets.Dir)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	began := time.Now()
	if err := command.Start(); err != nil {
		return measured{}, fmt.Errorf("run %s: %w", b.command, err)
	}
	done := make(chan error, 1)
	go func() { done <- command.Wait() }()
	ticker := time.NewTicker(sampling)
	defer ticker.Stop()
	var m measured
	for {
		select {
		case <-ticker.C:
			m.peak = max(m.peak, highWater(command.Process.Pid))
		case err := <-done:
			m.stdout, m.wall = stdout.Bytes(), time.Since(began)
			if err != nil {
				return m, fmt.Errorf("run %s %s: %w: %s%s", b.command, strings.Join(args, " "), err, stderr.Bytes(), failing(m.stdout))
			}
			return m, nil
		}
	}
}

// failing names the scenarios of a report that did not pass, for an error.
func failing(stdout []byte) string {
	var r report.Report
	if json.Unmarshal(stdout, &r) != nil {
		return ""
	}
	var text strings.Builder
	for _, outcome := range r.Outcomes {
		if outcome.Reason != "" {
			_, _ = fmt.Fprintf(&text, "\n%s %s: %s", outcome.Verdict, outcome.Name, outcome.Reason)
		}
	}
	return text.String()
}

// highWater reads VmHWM of a process, in MiB.
func highWater(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kib / 1024
		}
	}
	return 0
}
