package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/report"
)

func (a *app) reportMatrixCommand() *cobra.Command {
	output := ""
	command := &cobra.Command{
		Use:   "matrix DIR|FILE ...",
		Short: "Compare API servers: which requirement holds on which",
		Long: `Write one HTML page that compares the reports of several API servers: the servers, their
claims to profiles, and each requirement with its verdict and the reason for it. The page is
one file, which needs no network. With -o markdown, write a shorter comparison, for a repository.
Name the servers with run --implementation project=NAME,version=VERSION.`,
		Example: "  admissiontest report matrix kube-1.37 kube-1.36 mine > servers.html",
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s takes the folders of reports; got none", command.CommandPath())
			}
			if output != "html" && output != "markdown" {
				return usagef("-o: there is no output %q; want html or markdown", output)
			}
			return a.reading(func(_ context.Context, args []string) error { return a.reportMatrix(args, output == "markdown") })(command, args)
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "html", "what to write: html or markdown")
	return command
}

// reportMatrix implements the command report matrix.
func (a *app) reportMatrix(args []string, markdown bool) error {
	catalogue, err := a.wholeCatalogue()
	if err != nil {
		return err
	}
	inputs, err := readReports(args)
	if err != nil {
		return err
	}
	var servers []report.Server
	for _, input := range inputs {
		server := report.Server{File: input.File, Report: input.Report}
		for _, p := range engine.Profiles() {
			claim, err := p.Judge(input.Report, catalogue)
			if err != nil {
				return err
			}
			if claim.Passed+len(claim.Failed)+len(claim.NotMet) > 0 { // the profile was run
				server.Claims = append(server.Claims, claim)
			}
		}
		servers = append(servers, server)
	}
	if markdown {
		return report.NewMatrix(servers).WriteMarkdown(a.Stdout)
	}
	return report.NewMatrix(servers).WriteHTML(a.Stdout)
}

func (a *app) reportBadgeCommand() *cobra.Command {
	name := ""
	command := a.ofReport(&cobra.Command{
		Use:     "badge DIR|FILE --profile NAME",
		Short:   "Print a badge: whether an API server conforms to a profile",
		Long:    `Print a badge as JSON. Publish it, and https://shields.io/badges/endpoint-badge draws it.`,
		Example: "  admissiontest report badge out --profile webhooks > badge.json",
	}, func(input report.Input) error { return a.reportBadge(input.Report, name) })
	command.Flags().StringVar(&name, "profile", "", "the profile: "+strings.Join(engine.ProfileNames(), ", "))
	return command
}

// reportBadge implements the command report badge.
func (a *app) reportBadge(r report.Report, name string) error {
	chosen, err := engine.ProfileNamed(name)
	if err != nil {
		return usagef("--profile: %w", err)
	}
	catalogue, err := a.wholeCatalogue()
	if err != nil {
		return err
	}
	claim, err := chosen.Judge(r, catalogue)
	if err != nil {
		return err
	}
	return report.WriteBadge(a.Stdout, claim)
}

func (a *app) reportVerifyCommand() *cobra.Command {
	return a.ofReport(&cobra.Command{
		Use:   "verify DIR|FILE",
		Short: "Check a submitted report",
		Long: `Check a report against the catalogue of this version: that the outcomes are of its
requirements, with their levels and sentences, that the numbers are right, and that the claim
to a profile follows from the outcomes. It cannot find out whether the run took place.

The exit code is 1 if the report is not right.`,
		Example: "  admissiontest report verify submitted/",
	}, a.reportVerify)
}

// reportVerify implements the command report verify.
func (a *app) reportVerify(input report.Input) error {
	catalogue, err := a.wholeCatalogue()
	if err != nil {
		return err
	}
	problems, err := engine.Verify(input.Report, catalogue)
	if err != nil {
		return err
	}
	for _, problem := range problems {
		if _, err := fmt.Fprintln(a.Stdout, problem); err != nil {
			return fmt.Errorf("write the problems: %w", err)
		}
	}
	if len(problems) > 0 {
		return withCode(exitFail, nil)
	}
	_, err = io.WriteString(a.Stdout, "the report is right: its outcomes are of the catalogue, and its claims follow from them\n")
	return err
}

// wholeCatalogue returns the scenarios of this version.
func (a *app) wholeCatalogue() ([]scenario.Scenario, error) {
	return scenario.Load(scenario.LoadOptions{FS: a.catalogue})
}
