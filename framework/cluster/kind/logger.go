package kind

import (
	"fmt"
	"strings"
	"unicode"

	"sigs.k8s.io/kind/pkg/log"
)

// logger gives what kind says to a function, one line at a time.
type logger struct{ progress func(string) }

var (
	_ log.Logger     = logger{}
	_ log.InfoLogger = logger{}
)

// Warn passes a warning on.
func (l logger) Warn(message string) { l.tell("warning: " + message) }

// Warnf is Warn with a format.
func (l logger) Warnf(format string, arguments ...any) { l.Warn(fmt.Sprintf(format, arguments...)) }

// Error passes an error on.
func (l logger) Error(message string) { l.tell("error: " + message) }

// Errorf is Error with a format.
func (l logger) Errorf(format string, arguments ...any) { l.Error(fmt.Sprintf(format, arguments...)) }

// Info passes a line on.
func (l logger) Info(message string) { l.tell(message) }

// Infof is Info with a format.
func (l logger) Infof(format string, arguments ...any) { l.tell(fmt.Sprintf(format, arguments...)) }

// Enabled is true: what is for debugging never comes here.
func (l logger) Enabled() bool { return true }

// V discards what is for debugging.
func (l logger) V(level log.Level) log.InfoLogger {
	if level > 0 {
		return log.NoopInfoLogger{}
	}
	return l
}

// tell passes on what begins or fails, in plain words. That a step is done is
// told by the next.
func (l logger) tell(message string) {
	for line := range strings.Lines(message) {
		if strings.Contains(line, "✓") {
			continue
		}
		if text := plain(line); text != "" {
			l.progress("kind: " + text)
		}
	}
}

// plain takes decoration off a line: bullets, dots of waiting, and emoji.
func plain(line string) string {
	line = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.So, r) || r == '•' || r == '\uFE0F' {
			return -1
		}
		return r
	}, line)
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "..."))
}
