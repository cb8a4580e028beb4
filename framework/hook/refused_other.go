//go:build !unix

package hook

import (
	"errors"
	"fmt"
	"net"
)

// holdPort works on Unix systems only.
func holdPort(ip net.IP) (port int, release func() error, err error) {
	return 0, nil, fmt.Errorf("bind refused port on %s: %w on this system; use another fault", ip, errors.ErrUnsupported)
}
