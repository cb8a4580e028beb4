package hook_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
)

const (
	issuer   = "https://issuer.example.com"
	audience = "https://guard.example.svc:443/validate"
)

func base64url(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// minted returns a token with the claims of a good one after a change.
func minted(t *testing.T, algorithm, keyID string, sign func(digest []byte) ([]byte, error), change func(claims, private map[string]any)) string {
	t.Helper()
	private := map[string]any{
		"validatingwebhookconfiguration": map[string]any{"name": "c", "uid": "u"},
		"attestations":                   map[string]any{"admissionReviewAPIGroups": []string{"apps"}},
	}
	claims := map[string]any{
		"iss": issuer, "aud": []string{audience}, "nbf": time.Now().Unix(), "exp": time.Now().Add(10 * time.Minute).Unix(), "kubernetes.io": private,
	}
	if change != nil {
		change(claims, private)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	text := base64url(fmt.Appendf(nil, `{"alg":%q,"kid":%q}`, algorithm, keyID)) + "." + base64url(body)
	digest := sha256.Sum256([]byte(text))
	signature, err := sign(digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64url(signature)
}

// A Hook with Tokens answers calls with a good token as its Script says, and refuses all others.
func TestTokens(t *testing.T) {
	ours, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := curve.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	byCurve := func(digest []byte) ([]byte, error) {
		r, s, err := ecdsa.Sign(rand.Reader, curve, digest)
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...), err
	}
	keys := fmt.Appendf(nil, `{"keys": [{"kty": "RSA", "kid": "r", "alg": "RS256", "n": %q, "e": "AQAB"}, {"kty": "EC", "kid": "e", "crv": "P-256", "x": %q, "y": %q}]}`, base64url(ours.N.Bytes()), base64url(point[1:33]), base64url(point[33:]))
	server := start(t)
	endpoint, err := server.Register(hook.Hook{
		Owner: "o", Configuration: "c", Webhook: "hook.example.com", Phase: framework.Validating,
		Tokens: &hook.Tokens{Issuer: issuer, Keys: keys, Audience: audience},
		Script: hook.Script{Replies: []hook.Reply{{Warnings: []string{"first"}}, {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	to := callerOf(t, endpoint)
	by := func(key *rsa.PrivateKey) func([]byte) ([]byte, error) {
		return func(digest []byte) ([]byte, error) { return rsa.SignPKCS1v15(nil, key, crypto.SHA256, digest) }
	}
	changed := func(change func(claims, private map[string]any)) string {
		return "Bearer " + minted(t, "RS256", "r", by(ours), change)
	}
	claim := func(name string, value any) string {
		return changed(func(claims, _ map[string]any) { claims[name] = value })
	}
	private := func(name string, value any) string {
		return changed(func(_, private map[string]any) { private[name] = value })
	}
	attested := func(groups ...string) string {
		return private("attestations", map[string]any{"admissionReviewAPIGroups": groups})
	}
	good := changed(nil)
	for _, test := range []struct {
		name, header, group string
		code                int
		text                string
	}{
		{"none", "", "apps", 401, "no bearer token"},
		{"basic", "Basic YTpi", "apps", 401, "no bearer token"},
		{"text", "Bearer text", "apps", 401, "no JSON Web Token"},
		{"cut", good[:strings.LastIndex(good, ".")], "apps", 401, "no JSON Web Token"},
		{"not base64", "Bearer a!.b.c", "apps", 401, "no JSON Web Token"},
		{"other key", "Bearer " + minted(t, "RS256", "r", by(stranger), nil), "apps", 401, "signature"},
		{"unknown key", "Bearer " + minted(t, "RS256", "x", by(ours), nil), "apps", 401, "signature"},
		{"other algorithm", "Bearer " + minted(t, "RS512", "r", by(ours), nil), "apps", 401, "signature"},
		{"no algorithm", "Bearer " + minted(t, "none", "r", func([]byte) ([]byte, error) { return nil, nil }, nil), "apps", 401, "signature"},
		{"issuer", claim("iss", issuer+"/"), "apps", 401, "is of the issuer"},
		{"audience", claim("aud", []string{audience + "/"}), "apps", 401, "is for"},
		{"no audience", claim("aud", nil), "apps", 401, "is for"},
		{"expired", claim("exp", time.Now().Add(-2*time.Minute).Unix()), "apps", 401, "expired"},
		{"no end", claim("exp", nil), "apps", 401, "expired"},
		{"not yet", claim("nbf", time.Now().Add(2*time.Minute).Unix()), "apps", 401, "not valid yet"},
		{"claims of another type", claim("exp", "soon"), "apps", 401, "exp"},
		{"not bound", private("validatingwebhookconfiguration", nil), "apps", 403, "not bound"},
		{"bound to the other phase", changed(func(_, private map[string]any) {
			private["mutatingwebhookconfiguration"] = private["validatingwebhookconfiguration"]
			delete(private, "validatingwebhookconfiguration")
		}), "apps", 403, "not bound"},
		{"other group", good, "batch", 403, "API groups"},
		{"core group", attested(""), "", 403, "API groups"},
		{"no group", attested(), "apps", 403, "API groups"},
		{"good", good, "apps", 200, "first"},
		{"several audiences", claim("aud", []string{"other", audience}), "apps", 200, ""},
		{"expired just now", claim("exp", time.Now().Add(-5*time.Second).Unix()), "apps", 200, ""},
		{"all groups", attested("*"), "", 200, ""},
		{"a key on a curve", "Bearer " + minted(t, "ES256", "e", byCurve, nil), "apps", 200, ""},
		{"a short signature", "Bearer " + minted(t, "ES256", "e", func([]byte) ([]byte, error) { return []byte("s"), nil }, nil), "apps", 401, "signature"},
		{"a key on a curve as RSA", "Bearer " + minted(t, "RS256", "e", byCurve, nil), "apps", 401, "signature"},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := fmt.Appendf(nil, `{"apiVersion":%q,"kind":"AdmissionReview","request":{"uid":"u","resource":{"group":%q,"version":"v1","resource":"things"}}}`, v1, test.group)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to.url, bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if test.header != "" {
				request.Header.Set("Authorization", test.header)
			}
			got, err := to.do(request)
			if err != nil {
				t.Fatal(err)
			}
			calls := server.Calls("o")
			last := calls[len(calls)-1]
			if got.StatusCode != test.code || !strings.Contains(string(got.body), test.text) || last.Code != test.code || strings.HasPrefix(last.Answer, "refused: ") != (test.code != 200) {
				t.Errorf("got %d %s, recorded %d %q; want %d and %q", got.StatusCode, got.body, last.Code, last.Answer, test.code, test.text)
			}
		})
	}
}

// Without an Audience, it is the URL of the Hook.
func TestTokensForTheURL(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	keys := fmt.Appendf(nil, `{"keys": [{"kty": "RSA", "kid": "r", "n": %q, "e": %q}]}`, base64url(key.N.Bytes()), base64url(big.NewInt(int64(key.E)).Bytes()))
	server := start(t)
	endpoint, err := server.Register(hook.Hook{Owner: "o", Configuration: "c", Webhook: "w", Phase: framework.Validating, Tokens: &hook.Tokens{Issuer: issuer, Keys: keys}})
	if err != nil {
		t.Fatal(err)
	}
	to := callerOf(t, endpoint)
	for audience, code := range map[string]int{endpoint.URL: 200, endpoint.URL + "/": 401, audience: 401} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to.url, bytes.NewReader(fmt.Appendf(nil, `{"apiVersion":%q,"kind":"AdmissionReview","request":{"uid":"u","resource":{"group":"apps"}}}`, v1)))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+minted(t, "RS256", "r", func(digest []byte) ([]byte, error) { return rsa.SignPKCS1v15(nil, key, crypto.SHA256, digest) },
			func(claims, _ map[string]any) { claims["aud"] = []string{audience} }))
		if got, err := to.do(request); err != nil || got.StatusCode != code {
			t.Errorf("%s: got %v, %v; want %d", audience, got.Response, err, code)
		}
	}
}

func TestBadTokens(t *testing.T) {
	server := start(t)
	for want, tokens := range map[string]hook.Tokens{
		"Issuer is empty": {Keys: []byte(`{"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}`)},
		"unexpected end":  {Issuer: issuer},
		"with an RSA key": {Issuer: issuer, Keys: []byte(`{"keys": [{"kty": "EC", "crv": "P-256", "x": "AQAB", "y": "AQAB"}, {"kty": "RSA", "n": "!", "e": "AQAB"}]}`)},
	} {
		_, err := server.Register(hook.Hook{Owner: "o", Configuration: "c", Webhook: "w", Phase: framework.Validating, Tokens: &tokens})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
