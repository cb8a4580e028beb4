// Package certs makes a certificate authority and a serving certificate for tests. In production,
// use cert-manager or a similar tool.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Lifetime is the lifetime of both certificates.
const Lifetime = 24 * time.Hour

// Certs are the certificate of a CA, and a serving certificate with its key, in PEM.
type Certs struct{ CA, Cert, Key []byte }

// Make makes a CA and a serving certificate. The certificate is valid for the Service, for
// localhost and for 127.0.0.1.
func Make() (Certs, error) {
	names := []string{"ingress-guard.ingress-guard.svc", "localhost"}
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ingress-guard CA"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(Lifetime), // the clocks of two machines can differ
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: names[0]},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Certs{}, fmt.Errorf("make CA: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Certs{}, fmt.Errorf("make key: %w", err)
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return Certs{}, fmt.Errorf("make CA: %w", err)
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		return Certs{}, fmt.Errorf("make certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Certs{}, fmt.Errorf("make key: %w", err)
	}
	block := func(kind string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	return Certs{CA: block("CERTIFICATE", caDER), Cert: block("CERTIFICATE", leafDER), Key: block("PRIVATE KEY", keyDER)}, nil
}

// Write writes ca.crt, tls.crt and tls.key to a folder, which it creates if needed.
func (c Certs) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write certificates: %w", err)
	}
	for name, content := range map[string][]byte{"ca.crt": c.CA, "tls.crt": c.Cert, "tls.key": c.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return fmt.Errorf("write certificates: %w", err)
		}
	}
	return nil
}
