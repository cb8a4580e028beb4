// Command bench measures the command with the whole catalogue, beside a bare client that sends an API server the same number of
// namespaces, configurations and writes, and nothing else. `make bench` runs it. It is not part of a release.
//
// Times depend on the machine: only the ratios to the bare client of the same run have limits, and the figures of a busy machine
// mean little. A limit that is exceeded is printed, and is no error. Scenarios that did not pass are named, and are an error.
// Then it measures a PolicyTest without and with the mutants of its policy.
package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/scenarios"
)

// The limits of times, as multiples of the time of the bare client.
const (
	wholeLimit   = 10.0
	defaultLimit = 1.9
	firstLimit   = 2.0
)

// mutantsLimit is the limit for a PolicyTest with the 58 mutants of its policy, as a multiple of the time without them: 30 mutants may
// take 20 s where it takes 3.2 s.
const mutantsLimit = 12.0

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run parses the flags, and measures.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	command := flags.String("command", "bin/admissiontest", "the command to measure")
	version := flags.String("k8s-version", "", "the Kubernetes version (default: "+binaries.DefaultVersion+")")
	if err := flags.Parse(args); err != nil {
		return err
	}
	found, err := binaries.Ensure(ctx, binaries.Options{Version: *version, Progress: func(line string) { fmt.Println(line) }})
	if err != nil {
		return err
	}
	all, err := scenario.Load(scenario.LoadOptions{FS: scenarios.FS})
	if err != nil {
		return err
	}
	fmt.Printf("kube-apiserver %s, %d scenarios\n", found.Version, len(all))
	bare, err := measureBare(ctx, found.Dir, workOf(all))
	if err != nil {
		return fmt.Errorf("measure the bare client: %w", err)
	}
	if err := catalogue(ctx, *command, found.Dir, bare); err != nil {
		return err
	}
	return mutants(ctx, *command, found.Dir)
}

// catalogue runs the catalogue as a user does.
func catalogue(ctx context.Context, command, assets string, bare time.Duration) error {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	began := time.Now()
	first, ended := firstVerdict(ctx, command, "run", "--assets-dir", assets, "--report", dir)
	whole := time.Since(began)
	var r report.Report
	text, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return errors.Join(ended, err)
	}
	figure("the first verdict", first, "the bare client", firstLimit, bare)
	figure("the catalogue on the default server", time.Duration(r.Timing.Catalogue*float64(time.Second)), "the bare client", defaultLimit, bare)
	figure("the whole run", whole, "the bare client", wholeLimit, bare)
	fmt.Println(r.Summary)
	red := false
	for _, o := range r.Outcomes {
		if o.Verdict == framework.Fail || o.Verdict == framework.Errored || o.Verdict == framework.Inconclusive {
			fmt.Printf("%s %s: %s\n", o.Verdict, o.Name, o.Reason)
			red = true
		}
	}
	if red {
		return errors.New("scenarios did not pass")
	}
	return ended
}

// table is a PolicyTest with two cases, and a policy with 58 mutants.
//
//go:embed policytest.yaml
var table []byte

// mutants runs the table without and with --mutants. Mutants that no case notices are no error here.
func mutants(ctx context.Context, command, assets string) error {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "policytest.yaml")
	if err := os.WriteFile(file, table, 0o600); err != nil {
		return err
	}
	began := time.Now()
	if said, err := exec.CommandContext(ctx, command, "run", "--assets-dir", assets, file).CombinedOutput(); err != nil {
		return fmt.Errorf("run a PolicyTest: %w: %s", err, said)
	}
	plain := time.Since(began)
	figure("a PolicyTest with two cases", plain, "", 0, 0)
	began = time.Now()
	if said, err := exec.CommandContext(ctx, command, "run", "--assets-dir", assets, "--mutants", file).CombinedOutput(); err != nil {
		return fmt.Errorf("run the mutants of a policy: %w: %s", err, said)
	}
	figure("the same with --mutants", time.Since(began), "the PolicyTest", mutantsLimit, plain)
	return nil
}

// firstVerdict runs a command and returns how long it took until its progress said that scenarios are done. The error is not
// nil if it never did, or if the command failed.
func firstVerdict(ctx context.Context, name string, args ...string) (first time.Duration, err error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	progress, err := command.StderrPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := command.Start(); err != nil {
		return 0, fmt.Errorf("run %s: %w", name, err)
	}
	last := ""
	for lines := bufio.NewScanner(progress); lines.Scan(); {
		last = strings.TrimSpace(lines.Text())
		if first == 0 && strings.Contains(last, " done, ") && !strings.HasPrefix(last, "0 ") {
			first = time.Since(began)
		}
	}
	err = command.Wait()
	if err == nil && first == 0 {
		err = errors.New("its progress named no scenario that is done")
	}
	if err != nil {
		return first, fmt.Errorf("run %s %s: %w: %s", name, strings.Join(args, " "), err, last)
	}
	return first, nil
}

// figure prints a time, and its ratio to another time if the ratio has a limit.
func figure(what string, took time.Duration, other string, limit float64, otherTook time.Duration) {
	fmt.Printf("%-38s %7.2f s", what, took.Seconds())
	if limit > 0 {
		ratio, verdict := took.Seconds()/otherTook.Seconds(), "ok"
		if ratio > limit {
			verdict = "EXCEEDED"
		}
		fmt.Printf(", %.2f times %s, limit %g: %s", ratio, other, limit, verdict)
	}
	fmt.Println()
}
