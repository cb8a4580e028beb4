package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
)

// Server is a column of a matrix: the report of an API server, and its claims to profiles.
type Server struct {
	// File is the path of the report.
	File   string
	Report Report
	Claims []Claim
}

// Matrix compares API servers: which requirement holds on which.
type Matrix struct {
	Servers  []Column
	Profiles []ProfileRow
	Areas    []MatrixArea
}

// Column is a server with the name that people read.
type Column struct {
	Name string
	Server
}

// ProfileRow has the claims to a profile, one for each server. A claim without a profile was not run.
type ProfileRow struct {
	Name   string
	Claims []Claim
}

// MatrixArea has the requirements of an area. Cells count its verdicts for each server.
type MatrixArea struct {
	Name string
	// Differs is the number of requirements that do not have the same verdict on all servers.
	Differs int
	Cells   []Summary
	Rows    []MatrixRow
}

// MatrixRow is a requirement.
type MatrixRow struct {
	Name, Requirement string
	Level             framework.Level
	Differs           bool
	// Cells has an outcome for each server. One without a verdict was not run.
	Cells []MatrixCell
}

// MatrixCell is the outcome of a requirement on a server.
type MatrixCell struct {
	Server string
	Outcome
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

// NewMatrix compares the reports of servers.
func NewMatrix(servers []Server) Matrix {
	m := Matrix{}
	rows := map[string]*MatrixRow{}
	areas := map[string]string{}
	for i, server := range servers {
		name := serverName(server.Report)
		m.Servers = append(m.Servers, Column{name, server})
		for _, outcome := range server.Report.Outcomes {
			row := rows[outcome.Name]
			if row == nil {
				row = &MatrixRow{Name: outcome.Name, Requirement: outcome.Requirement, Level: outcome.Level, Cells: make([]MatrixCell, len(servers))}
				rows[outcome.Name], areas[outcome.Name] = row, outcome.Area
			}
			row.Cells[i] = MatrixCell{name, outcome, sign(outcome.Verdict)}
		}
		for _, claim := range server.Claims {
			at := slices.IndexFunc(m.Profiles, func(row ProfileRow) bool { return row.Name == claim.Profile })
			if at < 0 {
				at = len(m.Profiles)
				m.Profiles = append(m.Profiles, ProfileRow{claim.Profile, make([]Claim, len(servers))})
			}
			m.Profiles[at].Claims[i] = claim
		}
	}
	byArea := map[string]*MatrixArea{}
	for name, row := range rows {
		in := byArea[areas[name]]
		if in == nil {
			in = &MatrixArea{Name: areas[name]}
			byArea[areas[name]] = in
		}
		row.Differs = slices.ContainsFunc(row.Cells, func(cell MatrixCell) bool { return cell.Verdict != row.Cells[0].Verdict })
		if row.Differs {
			in.Differs++
		}
		in.Rows = append(in.Rows, *row)
	}
	for _, in := range byArea {
		slices.SortFunc(in.Rows, func(a, b MatrixRow) int { return cmp.Compare(a.Name, b.Name) })
		for i := range servers {
			var outcomes []Outcome
			for _, row := range in.Rows {
				if row.Cells[i].Verdict != "" {
					outcomes = append(outcomes, row.Cells[i].Outcome)
				}
			}
			in.Cells = append(in.Cells, Count(outcomes))
		}
		m.Areas = append(m.Areas, *in)
	}
	slices.SortFunc(m.Areas, func(a, b MatrixArea) int { return cmp.Compare(a.Name, b.Name) })
	return m
}

// serverName returns what the operator calls the implementation, or else its version.
func serverName(r Report) string {
	name := ""
	if r.Implementation != nil {
		name = strings.TrimSpace(r.Implementation.Project + " " + r.Implementation.Version)
	}
	return cmp.Or(name, strings.TrimSpace("API server "+r.Target.ServerVersion))
}
