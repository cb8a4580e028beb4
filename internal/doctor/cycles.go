package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// edge says that a backend can keep another one from coming back.
type edge struct {
	from, to *backend
	by       *webhook
	request  string
	unknown  string
}

// edges returns the edges between different backends, the most harmful first.
func (w *world) edges() []edge {
	var all []edge
	done := map[*backend]bool{nil: true}
	for _, target := range w.webhooks {
		to := target.backend
		if done[to] {
			continue
		}
		done[to] = true
		p := w.podOf(to)
		for _, h := range w.webhooks {
			if d := w.reaches(h, p); h.backend != nil && h.backend != to && d.possible() {
				all = append(all, edge{h.backend, to, h, p.text, d.unknown})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b edge) int { return a.weight() - b.weight() })
	return all
}

// weight is smaller for an edge that is more harmful.
func (e edge) weight() int {
	weight := 0
	if !e.by.fails {
		weight += 2
	}
	if e.unknown != "" {
		weight++
	}
	return weight
}

func checkCycles(c *checker) {
	all := c.edges()
	known := map[*backend]bool{} // each backend is in one finding
	for _, e := range all {
		if known[e.from] || known[e.to] {
			continue
		}
		cycle := shortestCycle(all, e)
		if !slices.ContainsFunc(cycle, func(e edge) bool { return c.judged(e.by.configuration) }) {
			continue
		}
		for _, e := range cycle {
			known[e.from] = true
		}
		c.cycle(cycle)
	}
}

// cycle adds the finding about a cycle.
func (c *checker) cycle(cycle []edge) {
	severity, unknown := Error, ""
	var lines, names []string
	for _, e := range cycle {
		if !e.by.fails {
			severity = Warning
		}
		if unknown == "" {
			unknown = e.unknown
		}
		names = append(names, e.from.String())
		lines = append(lines, fmt.Sprintf("%s -> %s: %s calls %s of %s", e.from, e.to, e.request, e.by.Name, e.by.configuration))
	}
	if unknown != "" {
		severity = severity.lower(1)
	}
	first := cycle[slices.IndexFunc(cycle, func(e edge) bool { return c.judged(e.by.configuration) })]
	c.webhook(first.by, selectorField(first.by), Finding{
		Severity: severity, Unknown: unknown, Request: first.request, More: lines,
		Message: fmt.Sprintf("webhooks need each other to create their Pods: %s -> %s", strings.Join(names, " -> "), names[0]),
	})
}

// shortestCycle returns the shortest cycle that begins with an edge, or nil.
func shortestCycle(all []edge, first edge) []edge {
	seen := map[*backend]bool{first.to: true}
	for paths := [][]edge{{first}}; len(paths) > 0; paths = paths[1:] {
		path := paths[0]
		last := path[len(path)-1]
		if last.to == first.from {
			return path
		}
		for _, e := range all {
			if e.from == last.to && !seen[e.to] {
				seen[e.to] = true
				paths = append(paths, append(slices.Clone(path), e))
			}
		}
	}
	return nil
}
