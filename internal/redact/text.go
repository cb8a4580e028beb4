package redact

import (
	"regexp"

	"github.com/admissiontest/admissiontest/internal/match"
)

// tokens are the forms of credentials that text can have. The first group is kept.
func tokens() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`(?is)()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`),
		regexp.MustCompile(`(?i)(authorization"?\s*[:=]\s*\[?"?(?:bearer |basic |negotiate )?)[^\s",\]]+`),
		regexp.MustCompile(`(?i)(\bbearer\s+)[a-z0-9._~+/-]{16,}=*`),
		regexp.MustCompile(`()\beyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*){0,2}`), // a JSON Web Token, or a part of one
	}
}

// Text returns text without what has the form of a token, an Authorization header or a
// private key.
func Text(text string) string {
	for _, form := range tokens() {
		text = form.ReplaceAllString(text, "${1}"+match.Redacted)
	}
	return text
}
