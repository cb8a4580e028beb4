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
	"strings"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// coverageOptions are the flags of coverage.
type coverageOptions struct {
	command, version, data, document string
	again                            bool
}

func parseCoverage(args []string) (coverageOptions, error) {
	var o coverageOptions
	flags := flag.NewFlagSet("coverage", flag.ContinueOnError)
	flags.StringVar(&o.command, "command", "bin/admissiontest", "the command that runs the catalogue")
	flags.StringVar(&o.version, "k8s-version", binaries.DefaultVersion, "the Kubernetes version")
	flags.StringVar(&o.data, "data", "reports/coverage", "the folder for the data of the servers; what is in it is removed")
	flags.StringVar(&o.document, "o", "docs/coverage.md", "the document to write; empty to write none")
	flags.BoolVar(&o.again, "again", true, "run the catalogue; -again=false uses the data of the last run")
	return o, parseFlags(flags, args)
}

// runCoverage measures, prints the result and writes the document. If scenarios fail, it prints the result
// but does not write the document.
func runCoverage(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parseCoverage(args)
	if err != nil {
		return err
	}
	if o.data, err = filepath.Abs(o.data); err != nil {
		return fmt.Errorf("find the folder of the data: %w", err)
	}
	work, err := os.MkdirTemp("", "admissiontest-coverage-")
	if err != nil {
		return fmt.Errorf("make a folder for the source: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	server, err := openServer(ctx, o.version, work, out)
	if err != nil {
		return err
	}
	var failed error
	if o.again {
		assets := filepath.Join(work, "server")
		// Without the main package, Go writes nothing.
		if err := server.build(ctx, assets, "-cover", "-covermode=set", "-coverpkg=.,"+strings.Join(patterns(), ",")); err != nil {
			return err
		}
		failed = collector{command: o.command, version: o.version, data: o.data, out: out}.collect(ctx, assets)
	}
	m, err := o.measure()
	if err != nil {
		return errors.Join(failed, err)
	}
	var text bytes.Buffer
	if err := m.document(io.MultiWriter(out, &text), o.version); err != nil || failed != nil || o.document == "" {
		return errors.Join(failed, err)
	}
	return os.WriteFile(o.document, text.Bytes(), 0o644)
}

// measure reads the profile of the servers.
func (o coverageOptions) measure() (*measurement, error) {
	file, err := os.Open(filepath.Join(o.data, profileName))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read only
	p, err := parseProfile(file)
	if err != nil {
		return nil, err
	}
	m := measure(p, groups())
	for _, g := range m.groups {
		if g.statements == 0 {
			return nil, fmt.Errorf("the profile has no statement of %s: the packages moved in Kubernetes %s", g.name, o.version)
		}
	}
	return m, nil
}
