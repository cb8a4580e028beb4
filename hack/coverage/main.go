// Command coverage measures which statements of a kube-apiserver the catalogue runs. `make
// coverage` runs it. It is not part of a release.
//
// It builds a kube-apiserver with coverage, which is kept in the cache, runs the whole catalogue on
// it with every server profile, prints the shares, and writes docs/coverage.md.
//
// # Promise
//
// A statement counts once, even if several servers ran it. The output and the document depend only
// on the measurement.
//
// # Not promised
//
// If a statement ran, that does not mean that a scenario checks its effect. Whether a few
// statements run depends on timing.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/admissiontest/admissiontest/hack/coverage/profile"
	"github.com/admissiontest/admissiontest/hack/workshop"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

func main() { workshop.Main("coverage", run) }

// options are the flags.
type options struct {
	command, version, data, document, details string
	functions                                 int
	again                                     bool
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("coverage", flag.ContinueOnError)
	flags.StringVar(&o.command, "command", "bin/admissiontest", "the command that runs the catalogue")
	flags.StringVar(&o.version, "k8s-version", binaries.DefaultVersion, "the Kubernetes version")
	flags.StringVar(&o.data, "data", "reports/coverage", "the folder for the data of the servers; what is in it is removed")
	flags.StringVar(&o.document, "o", "docs/coverage.md", "the document to write; empty to write none")
	flags.StringVar(&o.details, "uncovered", "", "also print each block that did not run, of the packages at and below this path")
	flags.IntVar(&o.functions, "functions", 50, "how many functions to print; the document has all")
	flags.BoolVar(&o.again, "again", true, "run the catalogue; -again=false uses the data of the last run")
	return o, workshop.Parse(flags, args)
}

// run measures, prints the result and writes the document. If scenarios fail, it prints the result
// but does not write the document.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.data, err = filepath.Abs(o.data); err != nil {
		return fmt.Errorf("find the folder of the data: %w", err)
	}
	var failed error
	if o.again {
		found, err := binaries.Ensure(ctx, binaries.Options{
			Version: o.version, Cover: patterns(), Progress: func(line string) { _, _ = fmt.Fprintln(out, line) },
		})
		if err != nil {
			return err
		}
		failed = collector{command: o.command, data: o.data, out: out}.collect(ctx, found)
	}
	sources, err := newLibrary(ctx, o.version)
	if err != nil {
		return errors.Join(failed, err)
	}
	m, err := o.measure(sources)
	if err != nil {
		return errors.Join(failed, err)
	}
	if err := o.print(out, m, sources); err != nil || failed != nil {
		return errors.Join(failed, err)
	}
	return o.write(m)
}

// measure reads the profile of the servers.
func (o options) measure(sources *library) (*measurement, error) {
	file, err := os.Open(filepath.Join(o.data, profileName))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read only
	p, err := profile.Parse(file)
	if err != nil {
		return nil, err
	}
	m, err := measure(p, groups(), sources.source)
	if err != nil {
		return nil, err
	}
	for _, g := range m.groups {
		if g.statements == 0 {
			return nil, fmt.Errorf("the profile has no statement of %s: the packages moved in Kubernetes %s", g.name, o.version)
		}
	}
	return m, nil
}

// print prints the shares and, if wanted, the blocks.
func (o options) print(out io.Writer, m *measurement, sources *library) error {
	if err := m.summary(out, o.functions); err != nil || o.details == "" {
		return err
	}
	return m.details(out, o.details, sources.source)
}

// write writes the document.
func (o options) write(m *measurement) error {
	if o.document == "" {
		return nil
	}
	var text bytes.Buffer
	if err := m.document(&text, o.version); err != nil {
		return err
	}
	return os.WriteFile(o.document, text.Bytes(), 0o644)
}
