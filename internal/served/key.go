package served

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
)

// keyLength is the length of a Key. It is short, because the path of a socket is.
const keyLength = 16

// Key returns the name of the server that this process would start with some assets: a digest of
// everything that decides what it is. Another admissiontest can start its servers with other flags, so
// the program of this process is a part of it.
func Key(binaries assets.Assets) (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the program of this process: %w", err)
	}
	digest := sha256.New()
	for _, path := range []string{program, binaries.KubeAPIServer(), binaries.Etcd()} {
		info, err := os.Stat(path)
		if err != nil {
			return "", fmt.Errorf("identify the API server: %w", err)
		}
		_, _ = fmt.Fprintf(digest, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	}
	_, _ = fmt.Fprintf(digest, "%s %t\n", binaries.Version, binaries.ObservesPlugins)
	for _, name := range []string{"GOCOVERDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"} { // see package envtest
		value, set := os.LookupEnv(name)
		_, _ = fmt.Fprintf(digest, "%s=%q %t\n", name, value, set)
	}
	return hex.EncodeToString(digest.Sum(nil))[:keyLength], nil
}
