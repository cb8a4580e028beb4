package hook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// authority is a certificate authority in memory.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// leaf describes a serving certificate. Hosts are names or IP addresses.
type leaf struct {
	hosts               []string
	notBefore, notAfter time.Time
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key of certificate authority %s: %w", name, err)
	}
	certificate, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name, NotBefore: time.Now().AddDate(0, 0, -7)}, key)
	if err != nil {
		return nil, fmt.Errorf("create certificate authority %s: %w", name, err)
	}
	bundle, err := certutil.EncodeCertificates(certificate)
	if err != nil {
		return nil, fmt.Errorf("encode certificate authority %s: %w", name, err)
	}
	return &authority{certificate: certificate, key: key, pem: bundle}, nil
}

// issue creates a serving certificate. (client-go/util/cert signs none with a given
// authority.)
func (a *authority) issue(l leaf) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key of serving certificate: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("generate serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "admissiontest hook"},
		NotBefore:    l.notBefore,
		NotAfter:     l.notAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range l.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if host != "" {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("sign serving certificate for %v: %w", l.hosts, err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
