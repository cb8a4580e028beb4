package rules_test

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// checker is a webhook that checks tokens before another one decides.
type checker struct {
	next   http.Handler
	issuer *check.Issuer
	// blind is what it does not look at, and denies says that it refuses with a denial.
	blind  string
	denies bool
	code   int // 0 means 401
	// late refuses what the other one has decided.
	late bool
}

// ServeHTTP implements http.Handler.
func (c checker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 7<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var review struct {
		APIVersion string
		Request    struct {
			UID      string
			Resource struct{ Group string }
		}
	}
	_ = json.Unmarshal(body, &review) // the other one refuses it
	why := c.problem(r, review.Request.Resource.Group)
	code := max(c.code, http.StatusUnauthorized)
	switch {
	case why == "":
		c.next.ServeHTTP(w, r)
	case c.late:
		c.next.ServeHTTP(&recoded{w, http.StatusForbidden}, r)
	case c.denies && review.Request.UID != "":
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": review.APIVersion, "kind": "AdmissionReview", "response": map[string]any{
			"uid": review.Request.UID, "allowed": false, "status": map[string]any{"code": code, "message": why},
		}})
	default:
		http.Error(w, why, code)
	}
}

// recoded writes another code.
type recoded struct {
	http.ResponseWriter
	code int
}

func (r *recoded) Write(data []byte) (int, error) {
	r.WriteHeader(r.code)
	return r.ResponseWriter.Write(data)
}

// problem returns what is wrong with the token of a call, unless the checker is blind for it.
func (c checker) problem(r *http.Request, group string) string {
	token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	parts := strings.Split(token, ".")
	if !found || len(parts) != 3 {
		if c.blind == "token" && r.Header.Get("Authorization") == "" || c.blind == "text" {
			return ""
		}
		return "no token"
	}
	header, claims := decoded(parts[0]), decoded(parts[1])
	private, _ := claims["kubernetes.io"].(map[string]any)
	attestations, _ := private["attestations"].(map[string]any)
	attested, _ := attestations["admissionReviewAPIGroups"].([]any)
	audiences, _ := claims["aud"].([]any)
	own, now := "https://sound.sound.svc:443"+r.URL.Path, float64(time.Now().Unix())
	expires, _ := claims["exp"].(float64)
	begins, _ := claims["nbf"].(float64)
	for _, each := range []struct {
		name string
		good bool
	}{
		{"signature", header["alg"] == "RS256" && c.signed(parts) || c.blind == "none" && header["alg"] == "none"},
		{"issuer", claims["iss"] == c.issuer.URL},
		{"audience", slices.ContainsFunc(audiences, func(a any) bool {
			return a == own || c.blind == "longer" && strings.HasPrefix(a.(string), own) || c.blind == "path" && strings.HasPrefix(a.(string), "https://sound.sound.svc:443")
		})},
		{"group", slices.ContainsFunc(attested, func(a any) bool {
			return a == "*" && c.blind != "star" || a == group && group != "" && c.blind != "own" || c.blind == "prefix" && group != "" && strings.HasPrefix(a.(string), group)
		}) || c.blind == "unattested" && len(attested) == 0},
		{"end", expires > now}, {"begin", begins <= now+60},
	} {
		if !each.good && each.name != c.blind {
			return each.name
		}
	}
	return ""
}

func decoded(part string) (fields map[string]any) {
	data, _ := base64.RawURLEncoding.DecodeString(part)
	_ = json.Unmarshal(data, &fields) // none is no good token
	return fields
}

func (c checker) signed(parts []string) bool {
	block, _ := pem.Decode(c.issuer.PublicKey())
	key, err := x509.ParsePKCS1PublicKey(block.Bytes)
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	return err == nil && rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature) == nil
}

// checked returns the sound webhooks behind a checker.
func checked(t *testing.T, c checker) check.Subject {
	t.Helper()
	issuer, err := check.StartIssuer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(issuer.Close)
	s := soundSubject(fault{})
	c.next, c.issuer = s.Handler, issuer
	s.Handler, s.Tokens = c, issuer
	s.APIServer = check.APIServer{} // it has no tokens
	return s
}

// TestTokens: a webhook that checks tokens passes all rules, and refuses by the HTTP status or by a denial.
func TestTokens(t *testing.T) {
	for name, c := range map[string]checker{"status": {}, "denial": {denies: true}, "403": {code: http.StatusForbidden}, "denial with 403": {denies: true, code: http.StatusForbidden}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			passed := map[string]bool{}
			only := []string{"WH-AUTH-"}
			if name == "status" {
				only = nil
			}
			for _, each := range checkAll(t, checked(t, c), only...) {
				passed[each.Rule.ID] = passed[each.Rule.ID] || each.Verdict == framework.Pass
				if each.Verdict != framework.Pass && (each.Verdict != framework.Unsupported || isTokenRule(each.Rule.ID)) {
					t.Errorf("%s: %s: got %s, want pass: %s", each.webhook, each.Rule, each.Verdict, each.Reason)
				}
			}
			if n := len(slices.DeleteFunc(slices.Collect(maps.Keys(passed)), func(id string) bool { return !isTokenRule(id) || !passed[id] })); n != 6 {
				t.Errorf("%d rules about tokens passed; want 6", n)
			}
		})
	}
}

func isTokenRule(id string) bool { return strings.HasPrefix(id, "WH-AUTH-") }

// TestTokenFaults: each webhook with a fault in its check of tokens fails the rule about it and no other.
func TestTokenFaults(t *testing.T) {
	for name, test := range map[string]struct {
		checker
		want []string
	}{
		"refuses the own group":   {checker{blind: "own"}, []string{"WH-AUTH-1"}},
		"takes no token":          {checker{blind: "token"}, []string{"WH-AUTH-2"}},
		"takes any text":          {checker{blind: "text"}, []string{"WH-AUTH-2"}},
		"any audience":            {checker{blind: "audience"}, []string{"WH-AUTH-3"}},
		"longer audience":         {checker{blind: "longer"}, []string{"WH-AUTH-3"}},
		"any path":                {checker{blind: "path"}, []string{"WH-AUTH-3"}},
		"any group":               {checker{blind: "group"}, []string{"WH-AUTH-4"}},
		"longer group":            {checker{blind: "prefix"}, []string{"WH-AUTH-4"}},
		"no attestation":          {checker{blind: "unattested"}, []string{"WH-AUTH-4"}},
		"expired":                 {checker{blind: "end"}, []string{"WH-AUTH-5"}},
		"not yet valid":           {checker{blind: "begin"}, []string{"WH-AUTH-5"}},
		"any issuer":              {checker{blind: "issuer"}, []string{"WH-AUTH-6"}},
		"any signature":           {checker{blind: "signature"}, []string{"WH-AUTH-6"}},
		"without a signature":     {checker{blind: "none"}, []string{"WH-AUTH-6"}},
		"other code":              {checker{code: http.StatusInternalServerError}, []string{"WH-AUTH-2", "WH-AUTH-3", "WH-AUTH-4", "WH-AUTH-5", "WH-AUTH-6"}},
		"evaluates it first":      {checker{late: true}, []string{"WH-AUTH-2", "WH-AUTH-3", "WH-AUTH-4", "WH-AUTH-5", "WH-AUTH-6"}},
		"refuses every good one":  {checker{blind: "star"}, []string{"WH-AUTH-1"}},
		"denies every good one":   {checker{blind: "star", denies: true}, []string{"WH-AUTH-1"}},
		"denies with the own one": {checker{blind: "own", denies: true}, []string{"WH-AUTH-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var failed []string
			for _, each := range checkAll(t, checked(t, test.checker), "WH-AUTH-") {
				switch {
				case each.Verdict == framework.Fail || each.Verdict == framework.Errored:
					if failed = append(failed, each.Rule.ID); !slices.Contains(test.want, each.Rule.ID) {
						t.Logf("it also fails %s: %s: %s", each.webhook, each.Rule, each.Reason)
					}
				case test.blind == "star" && isTokenRule(each.Rule.ID) && each.Verdict == framework.Pass:
					t.Errorf("%s passes although every token is refused", each.Rule)
				}
			}
			if failed = slices.Compact(failed); !slices.Equal(failed, test.want) {
				t.Errorf("it fails %q, want only %q", failed, test.want)
			}
		})
	}
}

// TestTokensNeedAnAddress: the audience of a token is the address of the webhook.
func TestTokensNeedAnAddress(t *testing.T) {
	s := alone(checked(t, checker{}), check.Validating, "/validate")
	if p := check.Prepare(t.Context(), s); len(p.Misuse) != 1 || !strings.Contains(p.Misuse[0], "Tokens") {
		t.Errorf("got %q, want one about Tokens", p.Misuse)
	}
}
