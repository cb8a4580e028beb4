package redact

import (
	"crypto/rand"
	"regexp"
	"strings"

	"github.com/admissiontest/admissiontest/internal/match"
)

// The forms of credentials that text can have. The first group is kept.
var (
	privateKey    = regexp.MustCompile(`(?is)()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)
	authorization = regexp.MustCompile(`(?i)(authorization"?\s*[:=]\s*\[?"?(?:bearer |basic |negotiate )?)[^\s",\]]+`)
	bearer        = regexp.MustCompile(`(?i)(\bbearer\s+)[a-z0-9._~+/-]{16,}=*`)
	// webToken is a JSON Web Token, or a part of one.
	webToken = regexp.MustCompile(`()\beyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*){0,2}`)
)

// pathSecret is what NewPathSecret returns, or the beginning of it, in a path.
var pathSecret = regexp.MustCompile(`/` + pathSecretMark + `[a-z2-7]*`)

const pathSecretMark = "at-secret-"

// NewPathSecret returns a random secret of 130 bits that can be a part of the path of a URL. Text removes that
// part.
func NewPathSecret() string { return pathSecretMark + strings.ToLower(rand.Text()) }

// Text returns text without what has the form of a token, an Authorization header or a
// private key, and without the secrets in paths.
func Text(text string) string {
	text = pathSecret.ReplaceAllString(text, "")
	lower := strings.ToLower(text)
	for _, form := range []struct {
		word    string // a part of each match; a long text without it need not be searched
		pattern *regexp.Regexp
	}{{"private key", privateKey}, {"authorization", authorization}, {"bearer", bearer}, {"eyj", webToken}} {
		if strings.Contains(lower, form.word) {
			text = form.pattern.ReplaceAllString(text, "${1}"+match.Redacted)
		}
	}
	return text
}
