package hook

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
)

// Tokens are the tokens that a Hook accepts: tokens of ServiceAccounts which are bound to a webhook configuration, as a
// kube-apiserver with the feature gate APIServerWebhookAuthenticationToken issues them. A call with another token, or none,
// is recorded, and refused with 401. A token that is not bound to a configuration of the Hook's phase, or does not attest
// the API group of the review, is refused with 403. A refused call uses no Reply.
type Tokens struct {
	// Issuer is the issuer of the tokens: the flag --service-account-issuer of kube-apiserver. Required.
	Issuer string
	// Keys are the public keys of the issuer: a JSON Web Key Set, as kube-apiserver serves it at /openid/v1/jwks, with
	// keys for RS256 and ES256. Required.
	Keys []byte
	// Audience is the audience of the tokens. Empty means the URL of the Hook's ClientConfig. For a clientConfig with a
	// Service it is https://NAME.NAMESPACE.svc:PORT/PATH.
	Audience string
}

// leeway is by how much clocks may differ.
const leeway = time.Minute

// claims are the parts of a token that a Hook reads.
type claims struct {
	Issuer     string   `json:"iss"`
	Audience   []string `json:"aud"`
	Expiry     float64  `json:"exp"`
	NotBefore  float64  `json:"nbf"`
	Kubernetes struct {
		Validating   *struct{} `json:"validatingwebhookconfiguration"`
		Mutating     *struct{} `json:"mutatingwebhookconfiguration"`
		Attestations struct {
			Groups []string `json:"admissionReviewAPIGroups"`
		} `json:"attestations"`
	} `json:"kubernetes.io"`
}

func (t *Tokens) check() error {
	if t == nil {
		return nil
	}
	if _, err := keysOf(t.Keys); err != nil {
		return fmt.Errorf("Tokens: Keys: %w", err)
	}
	if t.Issuer == "" {
		return errors.New("Tokens: Issuer is empty; want the issuer of the tokens")
	}
	return nil
}

// refuse returns the HTTP status with which a call is refused, and why. 0 means that it is not.
func (t *Tokens) refuse(call *framework.Call, own string, now time.Time) (int, string) {
	token, found := strings.CutPrefix(call.Header.Get("Authorization"), "Bearer ")
	if !found {
		return http.StatusUnauthorized, "the call has no bearer token"
	}
	has, err := t.verify(token)
	audience := t.Audience
	if audience == "" {
		audience = own
	}
	at := func(seconds float64) time.Time { return time.Unix(int64(seconds), 0) }
	switch {
	case err != nil:
		return http.StatusUnauthorized, err.Error()
	case has.Issuer != t.Issuer:
		return http.StatusUnauthorized, fmt.Sprintf("the token is of the issuer %q, want %q", has.Issuer, t.Issuer)
	case !slices.Contains(has.Audience, audience):
		return http.StatusUnauthorized, fmt.Sprintf("the token is for %q, want %q", has.Audience, audience)
	case now.After(at(has.Expiry).Add(leeway)):
		return http.StatusUnauthorized, "the token has expired"
	case now.Before(at(has.NotBefore).Add(-leeway)):
		return http.StatusUnauthorized, "the token is not valid yet"
	}
	resource, _ := call.Request()["resource"].(map[string]any)
	group, _ := resource["group"].(string)
	bound := map[framework.Phase]*struct{}{framework.Validating: has.Kubernetes.Validating, framework.Mutating: has.Kubernetes.Mutating}
	switch attested := has.Kubernetes.Attestations.Groups; {
	case bound[call.Phase] == nil:
		return http.StatusForbidden, fmt.Sprintf("the token is not bound to a %s webhook configuration", call.Phase)
	case !slices.Contains(attested, "*") && (group == "" || !slices.Contains(attested, group)):
		return http.StatusForbidden, fmt.Sprintf("the token is for reviews of the API groups %q, want %q", attested, group)
	}
	return 0, ""
}

// verify returns the claims of a token whose signature is of one of the Keys.
func (t *Tokens) verify(token string) (claims, error) {
	var has claims
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return has, errors.New("the token is no JSON Web Token")
	}
	var decoded [3][]byte
	for i, part := range parts {
		data, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			return has, fmt.Errorf("the token is no JSON Web Token: %w", err)
		}
		decoded[i] = data
	}
	var header struct{ Alg, Kid string }
	if err := json.Unmarshal(decoded[0], &header); err != nil {
		return has, fmt.Errorf("the token is no JSON Web Token: %w", err)
	}
	keys, err := keysOf(t.Keys)
	if err != nil {
		return has, err
	}
	digest, key := sha256.Sum256([]byte(parts[0]+"."+parts[1])), keys[header.Kid]
	if !isOf(key, header.Alg, digest[:], decoded[2]) {
		return has, errors.New("the signature of the token is not of a key of the issuer")
	}
	return has, json.Unmarshal(decoded[1], &has)
}

// isOf reports whether a signature of a digest is of a key, with the algorithm of the key.
func isOf(key crypto.PublicKey, algorithm string, digest, signature []byte) bool {
	switch key := key.(type) {
	case *rsa.PublicKey:
		return algorithm == "RS256" && rsa.VerifyPKCS1v15(key, crypto.SHA256, digest, signature) == nil
	case *ecdsa.PublicKey:
		return algorithm == "ES256" && len(signature) == 64 &&
			ecdsa.Verify(key, digest, new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:]))
	}
	return false
}

// keysOf returns the RSA keys and P-256 keys of a JSON Web Key Set (RFC 7517), by their IDs.
func keysOf(set []byte) (map[string]crypto.PublicKey, error) {
	var read struct {
		Keys []struct{ Kty, Kid, N, E, Crv, X, Y string }
	}
	if err := json.Unmarshal(set, &read); err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	keys := map[string]crypto.PublicKey{}
	bytes := func(field string) []byte {
		data, _ := base64.RawURLEncoding.DecodeString(field) // what cannot be decoded is no key
		return data
	}
	for _, each := range read.Keys {
		n, exponent := new(big.Int).SetBytes(bytes(each.N)), new(big.Int).SetBytes(bytes(each.E))
		point, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, bytes(each.X), bytes(each.Y)))
		switch {
		case each.Kty == "RSA" && n.Sign() > 0 && exponent.IsInt64():
			keys[each.Kid] = &rsa.PublicKey{N: n, E: int(exponent.Int64())}
		case each.Kty == "EC" && each.Crv == "P-256" && err == nil:
			keys[each.Kid] = point
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("read the keys: want a JSON Web Key Set with an RSA key or a P-256 key")
	}
	return keys, nil
}
