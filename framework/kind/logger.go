package kind

import (
	"fmt"
	"strings"
	"unicode"

	"sigs.k8s.io/kind/pkg/log"
)

// logger sends the messages of kind to a function, one line at a time.
type logger struct{ progress func(string) }

var (
	_ log.Logger     = logger{}
	_ log.InfoLogger = logger{}
)

// Warn logs a warning.
func (l logger) Warn(message string) { l.log("warning: " + message) }

// Warnf is Warn with a format.
func (l logger) Warnf(format string, arguments ...any) { l.Warn(fmt.Sprintf(format, arguments...)) }

// Error logs an error.
func (l logger) Error(message string) { l.log("error: " + message) }

// Errorf is Error with a format.
func (l logger) Errorf(format string, arguments ...any) { l.Error(fmt.Sprintf(format, arguments...)) }

// Info logs a message.
func (l logger) Info(message string) { l.log(message) }

// Infof is Info with a format.
func (l logger) Infof(format string, arguments ...any) { l.log(fmt.Sprintf(format, arguments...)) }

// Enabled is true: V returns another logger for debugging messages.
func (l logger) Enabled() bool { return true }

// V discards debugging messages.
func (l logger) V(level log.Level) log.InfoLogger {
	if level > 0 {
		return log.NoopInfoLogger{}
	}
	return l
}

// log sends the lines that report the begin of a step or an error. Lines that report the end
// of a step are left out.
func (l logger) log(message string) {
	for line := range strings.Lines(message) {
		if strings.Contains(line, "✓") {
			continue
		}
		if text := plain(line); text != "" {
			l.progress("kind: " + text)
		}
	}
}

// plain removes decoration from a line: bullets, trailing dots, and emoji.
func plain(line string) string {
	line = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.So, r) || r == '•' || r == '\uFE0F' {
			return -1
		}
		return r
	}, line)
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "..."))
}
