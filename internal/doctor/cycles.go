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

// edges returns the edges between different backends.
func (w *world) edges() []edge {
	var backends []*backend
	for _, h := range w.webhooks {
		if h.backend != nil && !slices.Contains(backends, h.backend) {
			backends = append(backends, h.backend)
		}
	}
	var all []edge
	at := map[[2]*backend]int{}
	for _, to := range backends {
		p := w.podOf(to)
		for _, h := range w.webhooks {
			if h.backend == nil || h.backend == to {
				continue
			}
			d := w.reaches(h, p)
			if !d.possible() {
				continue
			}
			e := edge{h.backend, to, h, p.text, d.unknown}
			same, known := at[[2]*backend{h.backend, to}]
			switch {
			case !known:
				at[[2]*backend{h.backend, to}] = len(all)
				all = append(all, e)
			case all[same].weight() > e.weight():
				all[same] = e
			}
		}
	}
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
	from := map[*backend][]edge{}
	all := c.edges()
	slices.SortStableFunc(all, func(a, b edge) int { return a.weight() - b.weight() })
	for _, e := range all {
		from[e.from] = append(from[e.from], e)
	}
	known := map[*backend]bool{} // each backend is in one finding
	for _, e := range all {
		if known[e.from] || known[e.to] {
			continue
		}
		cycle := shortestCycle(from, e)
		if cycle == nil || !slices.ContainsFunc(cycle, func(e edge) bool { return c.judged(e.by.configuration) }) {
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
func shortestCycle(from map[*backend][]edge, first edge) []edge {
	paths := [][]edge{{first}}
	seen := map[*backend]bool{first.to: true}
	for len(paths) > 0 {
		path := paths[0]
		paths = paths[1:]
		last := path[len(path)-1]
		if last.to == first.from {
			return path
		}
		for _, e := range from[last.to] {
			if e.to == first.from || !seen[e.to] {
				seen[e.to] = true
				paths = append(paths, append(slices.Clone(path), e))
			}
		}
	}
	return nil
}
