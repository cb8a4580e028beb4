package rules

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// tokenSources are where the tokens are described.
func tokenSources() []string {
	return []string{
		"https://github.com/kubernetes/enhancements/tree/master/keps/sig-auth/6060-api-server-authentication-to-webhooks",
		"https://github.com/kubernetes/kubernetes/blob/v1.37.2/staging/src/k8s.io/api/authentication/v1/types.go",
	}
}

// tokenRules returns the rules for webhooks that want tokens from their callers.
func tokenRules() []check.Rule {
	return []check.Rule{
		{
			ID: "WH-AUTH-1", Name: "good-tokens-are-accepted", Level: framework.Must,
			Title:  "If the webhook checks tokens, a call with a token for it is decided, if the token attests all API groups, and if it attests the group of the request.",
			Why:    "kube-apiserver attests all groups, and an API server behind it only its own. A call that is refused fails the request of a user.",
			Fix:    "Accept * and the group of request.resource. Require no claim that other tokens of an API server do not have.",
			Source: tokenSources(), Check: checkGoodTokens,
		},
		{
			ID: "WH-AUTH-2", Name: "calls-without-a-token-are-refused", Level: framework.Must,
			Title:  "If the webhook checks tokens, a call without one, or with what is none, is refused with 401 or 403 and not evaluated.",
			Why:    "Every client that reaches the port can otherwise ask the webhook, and learn from its answers.",
			Fix:    "Check the header Authorization before the review is evaluated.",
			Source: tokenSources(), Check: func(t *check.T) { checkRefused(t, noTokens) },
		},
		{
			ID: "WH-AUTH-3", Name: "tokens-of-other-audiences-are-refused", Level: framework.Must,
			Title:  "If the webhook checks tokens, a token for another webhook, or for the API server, is refused with 401 or 403 and not evaluated.",
			Why:    "Whoever gets a token, such as another webhook, can otherwise use it here.",
			Fix:    "Compare aud with the address in clientConfig: the url, or https://NAME.NAMESPACE.svc:PORT/PATH.",
			Source: tokenSources(), Check: func(t *check.T) { checkRefused(t, otherAudiences) },
		},
		{
			ID: "WH-AUTH-4", Name: "the-api-group-must-be-attested", Level: framework.Must,
			Title:  "If the webhook checks tokens, a token that attests another API group than that of the request, or none, is refused with 401 or 403 and not evaluated.",
			Why:    "Whoever may create a Pod gets a token of its ServiceAccount for any audience. Only the attestation shows that the caller is an API server of this group.",
			Fix:    "Compare kubernetes.io.attestations.admissionReviewAPIGroups with the group of request.resource.",
			Source: tokenSources(), Check: func(t *check.T) { checkRefused(t, otherGroups) },
		},
		{
			ID: "WH-AUTH-5", Name: "tokens-expire", Level: framework.Must,
			Title:  "If the webhook checks tokens, a token that has expired, or is not valid yet, is refused with 401 or 403 and not evaluated.",
			Why:    "A token is valid for ten minutes, so that one that leaked is soon useless.",
			Fix:    "Compare exp and nbf with the time, with a minute or so for clocks that differ.",
			Source: tokenSources(), Check: func(t *check.T) { checkRefused(t, otherTimes) },
		},
		{
			ID: "WH-AUTH-6", Name: "tokens-of-other-issuers-are-refused", Level: framework.Must,
			Title:  "If the webhook checks tokens, a token of another issuer, or without a signature of the issuer, is refused with 401 or 403 and not evaluated.",
			Why:    "Every client can write a token. Only its signature shows who wrote it.",
			Fix:    "Let a library verify the signature, with the keys of the issuer and a fixed list of algorithms, and compare iss.",
			Source: tokenSources(), Check: func(t *check.T) { checkRefused(t, otherIssuers) },
		},
	}
}

// tokenCase is the value of the header Authorization, and what it is.
type tokenCase struct{ what, header string }

// needTokens ends the check of a webhook that checks no tokens.
func needTokens(t *check.T) {
	if t.Tokens == nil {
		t.Unsupported("Subject.Tokens is not set: the webhook checks no tokens")
	}
}

func checkGoodTokens(t *check.T) {
	needTokens(t)
	for n, c := range t.Cases() {
		groups := []string{"*"}
		if c.Request.Resource.Group != "" { // no token attests the core group alone
			groups = append(groups, c.Request.Resource.Group)
		}
		for _, group := range groups {
			a := sendWith(t, c, "Bearer "+t.Token(t.Claims(group)))
			denied := a.NoDecision() == "" && !a.Response.Allowed
			switch {
			case a.Err != nil:
				t.Unobserved("%s: %v", c, a.Err)
			case isRefusal(a.Status), n < len(t.Webhook.Allow) && refused(a):
				t.Errorf("%s with a good token for the API group %s: HTTP status %d, %s; want a decision about the request", c, group, a.Status, a.Verdict())
			case a.NoDecision() != "":
				t.Unobserved("%s with a good token: %s", c, a.NoDecision()) // other rules report that
			case denied:
				t.LogOnce(fmt.Sprintf("%s is denied, which can be because of the token", c))
			default:
				t.Reached()
			}
		}
	}
}

// sendWith sends the review of a case with a header Authorization.
func sendWith(t *check.T, c check.Case, header string) check.Answer {
	return t.SendRaw(t.Context(), t.Webhook, check.Raw{Body: bytes.NewReader(check.Encode(t.Review(c.Request))), Authorization: &header})
}

// isRefusal reports whether a code is that of a refusal of a caller.
func isRefusal(code int) bool { return code == http.StatusUnauthorized || code == http.StatusForbidden }

// refused reports whether an answer refuses the caller by its HTTP status, or is a denial that says the same.
func refused(a check.Answer) bool {
	return isRefusal(a.Status) || a.NoDecision() == "" && !a.Response.Allowed && isRefusal(a.Response.Status.Code)
}

// checkRefused sends each case with tokens that are not good. With a good one, a sample must be allowed: otherwise the webhook may
// refuse every token, and a refusal shows nothing.
func checkRefused(t *check.T, tokens func(*check.T, check.Case) []tokenCase) {
	needTokens(t)
	each := func(c check.Case, good check.Decision) {
		for _, bad := range tokens(t, c) {
			before := effects(t)
			a := sendWith(t, c, bad.header)
			if a.Err != nil {
				t.Unobserved("%s %s: %v", c, bad.what, a.Err)
				continue
			}
			switch {
			case !refused(a):
				t.Errorf("%s %s: HTTP status %d, %s; want 401 or 403", c, bad.what, a.Status, a.Verdict())
			case evaluated(good, a):
				t.Errorf("%s %s: it is refused after it was evaluated: %s, as with a good token", c, bad.what, a.Verdict())
			case !reflect.DeepEqual(before, effects(t)):
				t.Errorf("%s %s: it is refused, but what Subject.Effects returns has changed", c, bad.what)
			}
			t.Reached()
		}
	}
	accepted := false
	t.EachAllowed(func(c check.Case, good check.Decision) {
		accepted = true
		each(c, good)
	})
	if !accepted {
		t.Unobserved("no sample of Allow is allowed with a good token, so a refusal shows nothing")
		return
	}
	t.EachDenied(each)
}

func effects(t *check.T) any {
	if t.Effects == nil {
		return nil
	}
	return t.Effects()
}

// evaluated reports whether a refusal has parts of the decision about the request: the message of its denial, its warnings, its
// audit annotations or a patch.
func evaluated(good check.Decision, a check.Answer) bool {
	message := good.Response.Status.Message
	told := !good.Response.Allowed && (message == "" && !isRefusal(a.Status) || message != "" && strings.Contains(a.Problem+a.Response.Status.Message, message))
	same := len(a.Response.Warnings) > 0 && slices.Equal(a.Response.Warnings, good.Response.Warnings) ||
		len(a.Response.AuditAnnotations) > 0 && maps.Equal(a.Response.AuditAnnotations, good.Response.AuditAnnotations)
	return told || same || len(a.Response.Patch) > 0
}

// changedClaims returns a token with the claims of a good one, after a change.
func changedClaims(t *check.T, change func(claims map[string]any)) string {
	claims := t.Claims("*")
	change(claims)
	return "Bearer " + t.Token(claims)
}

// with returns a change that sets a claim; nil removes it.
func with(name string, value any) func(map[string]any) {
	return func(claims map[string]any) {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
}

func noTokens(t *check.T, _ check.Case) []tokenCase {
	good := t.Token(t.Claims("*"))
	return []tokenCase{
		{"without a token", ""}, {"with an empty token", "Bearer "}, {"with a token that is only text", "Bearer contract"},
		{"with a token that is cut", "Bearer " + good[:strings.LastIndex(good, ".")]}, {"with a user and a password", "Basic Y29udHJhY3Q6Y29udHJhY3Q="},
	}
}

func otherAudiences(t *check.T, _ check.Case) []tokenCase {
	own := t.Webhook.Audience()
	cases := []tokenCase{
		{"with a token for another webhook", changedClaims(t, with("aud", []string{"https://other.contract.svc:443/validate"}))},
		{"with a token for a longer address", changedClaims(t, with("aud", []string{own + "/contract"}))},
		{"with a token for the API server", changedClaims(t, with("aud", []string{"https://kubernetes.default.svc.cluster.local"}))},
		{"with a token without an audience", changedClaims(t, with("aud", nil))},
	}
	if parts := strings.SplitN(own, "/", 4); len(parts) == 4 && parts[3] != "" {
		cases = append(cases, tokenCase{"with a token for another path of its server", changedClaims(t, with("aud", []string{strings.Join(parts[:3], "/") + "/contract"}))})
	}
	return cases
}

func otherGroups(t *check.T, c check.Case) []tokenCase {
	attest := func(value any) string {
		return changedClaims(t, func(claims map[string]any) {
			with("attestations", value)(claims["kubernetes.io"].(map[string]any))
		})
	}
	cases := []tokenCase{
		{"with a token for another API group", attest(map[string]any{"admissionReviewAPIGroups": []string{"contract.example.com"}})},
		{"with a token for no API group", attest(map[string]any{"admissionReviewAPIGroups": []string{}})},
		{"with a token that attests nothing", attest(nil)},
		{"with the token of a Pod", changedClaims(t, with("kubernetes.io", map[string]any{
			"namespace": "contract", "serviceaccount": map[string]any{"name": "default", "uid": check.NewUID()}, "pod": map[string]any{"name": "contract", "uid": check.NewUID()},
		}))},
	}
	if group := c.Request.Resource.Group; group != "" {
		cases = append(cases, tokenCase{"with a token for an API group with a longer name", attest(map[string]any{"admissionReviewAPIGroups": []string{group + ".example.com"}})})
	}
	return cases
}

func otherTimes(t *check.T, _ check.Case) []tokenCase {
	at := func(from, until time.Duration) string {
		now := time.Now()
		return changedClaims(t, func(claims map[string]any) {
			claims["iat"], claims["nbf"], claims["exp"] = now.Add(from).Unix(), now.Add(from).Unix(), now.Add(until).Unix()
		})
	}
	return []tokenCase{
		{"with a token that expired an hour ago", at(-70*time.Minute, -time.Hour)},
		{"with a token that is valid in an hour", at(time.Hour, 70*time.Minute)},
	}
}

func otherIssuers(t *check.T, _ check.Case) []tokenCase {
	claims := t.Claims("*")
	forged := func(what, algorithm string, sign func([]byte) []byte) tokenCase {
		return tokenCase{what, "Bearer " + t.Forged(algorithm, claims, sign)}
	}
	secret := hmac.New(sha256.New, t.Tokens.PublicKey())
	good := strings.Split(t.Token(claims), ".")
	other := strings.Split(t.Token(t.Claims("contract.example.com")), ".")
	return []tokenCase{
		{"with a token that names another issuer", changedClaims(t, with("iss", "https://issuer.contract.example.com"))},
		forged("with a token of another key", "RS256", nil),
		forged("with a token without a signature", "none", func([]byte) []byte { return nil }),
		forged("with a token that is signed with the public key", "HS256", func(text []byte) []byte {
			_, _ = secret.Write(text) // it never fails
			return secret.Sum(nil)
		}),
		{"with a token whose claims were changed", fmt.Sprintf("Bearer %s.%s.%s", other[0], good[1], other[2])},
	}
}
