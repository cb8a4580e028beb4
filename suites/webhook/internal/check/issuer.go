package check

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Issuer issues tokens. It is documented in suites/webhook.
type Issuer struct {
	URL    string
	CA     []byte
	key    *rsa.PrivateKey
	other  *rsa.PrivateKey // signs forged tokens
	server *httptest.Server
}

// StartIssuer starts an Issuer.
func StartIssuer() (*Issuer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048) // the only algorithm that every library for OpenID Connect accepts
	if err != nil {
		return nil, fmt.Errorf("make the key of an issuer: %w", err)
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("make a key for forged tokens: %w", err)
	}
	i := &Issuer{key: key, other: other}
	mux := http.NewServeMux()
	serve := func(path string, document func() []byte) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(document()) // a client that is gone needs none
		})
	}
	serve("/.well-known/openid-configuration", func() []byte {
		return Encode(map[string]any{
			"issuer": i.URL, "jwks_uri": i.URL + keysPath, "response_types_supported": []string{"id_token"},
			"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	serve(keysPath, i.Keys)
	i.server = httptest.NewTLSServer(mux)
	i.URL = i.server.URL
	i.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.server.Certificate().Raw})
	return i, nil
}

// keysPath is where a kube-apiserver serves its keys.
const keysPath = "/openid/v1/jwks"

// Close ends the server of the Issuer.
func (i *Issuer) Close() { i.server.Close() }

// Keys returns the public key as a JSON Web Key Set.
func (i *Issuer) Keys() []byte {
	return Encode(map[string]any{"keys": []map[string]any{{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": i.keyID(),
		"n": encoded(i.key.N.Bytes()), "e": encoded(big.NewInt(int64(i.key.E)).Bytes()),
	}}})
}

func (i *Issuer) keyID() string {
	sum := sha256.Sum256(i.key.N.Bytes())
	return encoded(sum[:])
}

// PublicKey returns the public key in PEM.
func (i *Issuer) PublicKey() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&i.key.PublicKey)})
}

func encoded(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// claims returns the claims of a good token for a webhook, which attests an API group, as kube-apiserver writes them:
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/serviceaccount/claims.go#L77.
func (i *Issuer) claims(w *Webhook, group string) map[string]any {
	const caller, valid = "contract-apiserver", 10 * time.Minute
	now := time.Now()
	return map[string]any{
		"iss": i.URL, "sub": "system:serviceaccount:kube-system:" + caller, "aud": []string{w.Audience()}, "jti": NewUID(),
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(valid).Unix(),
		"kubernetes.io": map[string]any{
			"namespace":                             "kube-system",
			"serviceaccount":                        map[string]any{"name": caller, "uid": NewUID()},
			string(w.Kind) + "webhookconfiguration": map[string]any{"name": w.configuration, "uid": NewUID()},
			"attestations":                          map[string]any{"admissionReviewAPIGroups": []string{group}},
		},
	}
}

// sign returns a token with claims, with a signature of the Issuer.
func (i *Issuer) sign(claims map[string]any) string {
	return signed(i.keyID(), "RS256", claims, func(text []byte) []byte { return signature(i.key, text) })
}

// Claims returns the claims of a good token for the webhook, which attests an API group.
func (t *T) Claims(group string) map[string]any { return t.Tokens.claims(t.Webhook, group) }

// Token returns a token of the issuer with claims.
func (t *T) Token(claims map[string]any) string { return t.Tokens.sign(claims) }

// Forged returns a token with claims and the key ID of the issuer, which the issuer has not signed. Without a function it has a
// signature of another key.
func (t *T) Forged(algorithm string, claims map[string]any, sign func([]byte) []byte) string {
	if sign == nil {
		sign = func(text []byte) []byte { return signature(t.Tokens.other, text) }
	}
	return signed(t.Tokens.keyID(), algorithm, claims, sign)
}

// signature returns the signature of bytes for RS256.
func signature(key *rsa.PrivateKey, text []byte) []byte {
	digest := sha256.Sum256(text)
	made, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, digest[:])
	if err != nil {
		return nil // the key is large enough
	}
	return made
}

// signed returns a token with any signature.
func signed(keyID, algorithm string, claims map[string]any, sign func([]byte) []byte) string {
	text := encoded(Encode(map[string]any{"alg": algorithm, "kid": keyID, "typ": "JWT"})) + "." + encoded(Encode(claims))
	return text + "." + encoded(sign([]byte(text)))
}

// Audience returns the audience of tokens for the webhook: the address in its clientConfig, as kube-apiserver requires it:
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/registry/core/serviceaccount/storage/token.go#L474.
func (w *Webhook) Audience() string { return audienceOf(w.Config.ClientConfig) }

func audienceOf(config admissionregistrationv1.WebhookClientConfig) string {
	service := config.Service
	if service == nil {
		if config.URL == nil {
			return ""
		}
		return *config.URL
	}
	port, path := int32(443), "/"
	if service.Port != nil {
		port = *service.Port
	}
	if service.Path != nil {
		path = "/" + strings.TrimPrefix(*service.Path, "/")
	}
	return fmt.Sprintf("https://%s.%s.svc:%d%s", service.Name, service.Namespace, port, path)
}
