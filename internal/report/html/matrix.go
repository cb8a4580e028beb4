package html

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/report"
)

// Server is a column of a matrix: the report of an API server, and its claims to profiles.
type Server struct {
	// File is the path of the report.
	File   string
	Report report.Report
	Claims []report.Claim
}

// WriteMatrix writes a page that compares API servers: which requirement holds on which.
func WriteMatrix(w io.Writer, servers []Server) error {
	return write(w, "admissiontest: API servers compared", matrixTemplate, newMatrix(servers))
}

// matrix is what matrix.tmpl is executed with.
type matrix struct {
	Servers  []column
	Profiles []profileRow
	Areas    []matrixArea
}

type column struct {
	Name string
	Server
}

type profileRow struct {
	Name   string
	Claims []report.Claim
}

// matrixArea has the requirements of an area. Cells count its verdicts for each server.
type matrixArea struct {
	Name string
	// Differs is the number of requirements that do not have the same verdict on all servers.
	Differs int
	Cells   []report.Summary
	Rows    []matrixRow
}

// matrixRow is a requirement.
type matrixRow struct {
	Name, Requirement string
	Level             framework.Level
	Differs           bool
	// Cells has an outcome for each server. One without a verdict was not run.
	Cells []matrixCell
}

type matrixCell struct {
	Server string
	report.Outcome
	// Sign stands for the verdict in one character.
	Sign string
}

// sign returns one character for a verdict, because not every reader can tell the colours apart.
func sign(verdict framework.Verdict) string {
	signs := map[framework.Verdict]string{
		framework.Pass: "✓", framework.Fail: "✗", framework.Unsupported: "–", framework.Skipped: "·", framework.Inconclusive: "?", framework.Errored: "!",
	}
	return signs[verdict]
}

func newMatrix(servers []Server) matrix {
	m := matrix{}
	rows := map[string]*matrixRow{}
	areas := map[string]string{}
	for i, server := range servers {
		name := serverName(server.Report)
		m.Servers = append(m.Servers, column{name, server})
		for _, outcome := range server.Report.Outcomes {
			row := rows[outcome.Name]
			if row == nil {
				row = &matrixRow{Name: outcome.Name, Requirement: outcome.Requirement, Level: outcome.Level, Cells: make([]matrixCell, len(servers))}
				rows[outcome.Name], areas[outcome.Name] = row, outcome.Area
			}
			row.Cells[i] = matrixCell{name, outcome, sign(outcome.Verdict)}
		}
		for _, claim := range server.Claims {
			at := slices.IndexFunc(m.Profiles, func(row profileRow) bool { return row.Name == claim.Profile })
			if at < 0 {
				at = len(m.Profiles)
				m.Profiles = append(m.Profiles, profileRow{claim.Profile, make([]report.Claim, len(servers))})
			}
			m.Profiles[at].Claims[i] = claim
		}
	}
	byArea := map[string]*matrixArea{}
	for name, row := range rows {
		in := byArea[areas[name]]
		if in == nil {
			in = &matrixArea{Name: areas[name]}
			byArea[areas[name]] = in
		}
		row.Differs = slices.ContainsFunc(row.Cells, func(cell matrixCell) bool { return cell.Verdict != row.Cells[0].Verdict })
		if row.Differs {
			in.Differs++
		}
		in.Rows = append(in.Rows, *row)
	}
	for _, in := range byArea {
		slices.SortFunc(in.Rows, func(a, b matrixRow) int { return cmp.Compare(a.Name, b.Name) })
		for i := range servers {
			var outcomes []report.Outcome
			for _, row := range in.Rows {
				if row.Cells[i].Verdict != "" {
					outcomes = append(outcomes, row.Cells[i].Outcome)
				}
			}
			in.Cells = append(in.Cells, report.Count(outcomes))
		}
		m.Areas = append(m.Areas, *in)
	}
	slices.SortFunc(m.Areas, func(a, b matrixArea) int { return cmp.Compare(a.Name, b.Name) })
	return m
}

// serverName returns what the operator calls the implementation, or else its version.
func serverName(r report.Report) string {
	name := ""
	if r.Implementation != nil {
		name = strings.TrimSpace(r.Implementation.Project + " " + r.Implementation.Version)
	}
	return cmp.Or(name, strings.TrimSpace("API server "+r.Target.ServerVersion))
}
