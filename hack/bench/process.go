package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// measured is the result of one execution of the command.
type measured struct {
	stdout []byte
	wall   time.Duration
	// peak is the largest resident size of the process in MiB, without the API server that
	// it starts. It is 0 if the system does not report it.
	peak float64
}

// sampling is the interval of reading a process's memory. The value is a high-water mark, so
// only growth within the last interval is missed.
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
				return m, fmt.Errorf("run %s %s: %w: %s", b.command, strings.Join(args, " "), err, stderr.Bytes())
			}
			return m, nil
		}
	}
}

// highWater returns the largest resident size of a process in MiB, VmHWM in /proc, or 0 if it is not known.
func highWater(pid int) float64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kib, _ := strconv.ParseFloat(fields[1], 64)
			return kib / 1024
		}
	}
	return 0
}
