package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

// chain measures a chain of ten plugins beside the one that an API server makes of them:
// BenchmarkChain of package harness.
func (b *bench) chain(ctx context.Context) error {
	const benchmark = "^BenchmarkChain$/^working$"
	command := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", benchmark, "github.com/admissiontest/admissiontest/framework/harness")
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return fmt.Errorf("run %s: %w\n%s", benchmark, err, output)
	}
	times, err := timesOf(output)
	if err != nil {
		return err
	}
	b.figures.atMost("chain of ten plugins / an API server's own", times, 1.5, "times")
	return nil
}

// timesOf returns the metric "times" in the output of a benchmark.
func timesOf(output []byte) (float64, error) {
	found := regexp.MustCompile(`\s([0-9.]+) times\b`).FindSubmatch(output)
	if found == nil {
		return 0, fmt.Errorf("read the output of a benchmark: it has no metric times:\n%s", output)
	}
	times, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		return 0, fmt.Errorf("read the output of a benchmark: %w", err)
	}
	return times, nil
}
