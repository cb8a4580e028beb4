package redact

import (
	"regexp"

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

// Text returns text without what has the form of a token, an Authorization header or a
// private key.
func Text(text string) string {
	for _, form := range []*regexp.Regexp{privateKey, authorization, bearer, webToken} {
		text = form.ReplaceAllString(text, "${1}"+match.Redacted)
	}
	return text
}
