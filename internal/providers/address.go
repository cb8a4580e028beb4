package providers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
)

// maxCandidates limits the number of addresses to try.
const maxCandidates = 8

// candidate is an address by which the API server may be able to call this process.
type candidate struct {
	// listen is the host:port to listen on. advertise is the host to call; empty means the
	// host of listen.
	listen, advertise string
	// what describes the address: "loopback".
	what string
}

// String returns "172.18.0.1 (of this machine)".
func (c candidate) String() string {
	host := c.advertise
	if host == "" {
		host, _, _ = net.SplitHostPort(c.listen)
	}
	return host + " (" + c.what + ")"
}

// candidates returns the addresses to try, the preferred ones first.
func (c connection) candidates(ctx context.Context) ([]candidate, error) {
	if c.transport.HookAddress != "" {
		one, err := given(ctx, c.transport.HookAddress)
		if err != nil {
			return nil, fmt.Errorf("use HookAddress %s: %w", c.transport.HookAddress, err)
		}
		return []candidate{one}, nil
	}
	list := []candidate{at(netip.MustParseAddr("127.0.0.1"), "loopback")}
	if local, ok := towards(ctx, c.Config); ok {
		list = append(list, at(local, "route to the API server"))
	}
	addresses := localAddresses()
	if c.cluster != nil {
		slices.Reverse(addresses) // the newest interface can be that of the containers, which other machines do not reach
	}
	for _, address := range addresses {
		if address.Is4() && !address.IsLoopback() && !address.IsLinkLocalUnicast() {
			list = append(list, at(address, "of this machine"))
		}
	}
	seen := map[string]bool{}
	list = slices.DeleteFunc(list, func(one candidate) bool {
		again := seen[one.listen]
		seen[one.listen] = true
		return again
	})
	return list[:min(len(list), maxCandidates)], nil
}

func at(address netip.Addr, what string) candidate {
	return candidate{listen: net.JoinHostPort(address.String(), "0"), what: what}
}

// parseHookAddress parses a Transport.HookAddress: HOST or HOST:PORT. An IPv6 address
// with a port is in brackets.
func parseHookAddress(text string) (host, port string, err error) {
	host, port = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), "0"
	if _, notIP := netip.ParseAddr(host); notIP != nil && strings.Contains(text, ":") {
		if host, port, err = net.SplitHostPort(text); err != nil {
			return "", "", fmt.Errorf("%w; want HOST or HOST:PORT", err)
		}
		if number, bad := strconv.ParseUint(port, 10, 16); bad != nil || number == 0 {
			return "", "", fmt.Errorf("port %q: want a number from 1 to 65535", port)
		}
	}
	if ip, notIP := netip.ParseAddr(host); notIP == nil && ip.IsUnspecified() {
		return "", "", errors.New("want the address that the API server calls")
	}
	if host == "" || strings.ContainsAny(host, "/ ") {
		return "", "", errors.New("want HOST or HOST:PORT, without a scheme or a path")
	}
	return host, port, nil
}

// given returns the candidate for an address that the operator gives.
func given(ctx context.Context, text string) (candidate, error) {
	host, port, err := parseHookAddress(text)
	if err != nil {
		return candidate{}, err
	}
	everywhere := candidate{listen: net.JoinHostPort("0.0.0.0", port), advertise: host, what: "given"}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(found) == 0 {
		return everywhere, nil //nolint:nilerr // the API server may resolve a name that this machine does not
	}
	for _, address := range found {
		if address = address.Unmap(); slices.Contains(localAddresses(), address) {
			return candidate{listen: net.JoinHostPort(address.String(), port), advertise: host, what: "given"}, nil
		}
	}
	if found[0].Unmap().Is6() {
		everywhere.listen = net.JoinHostPort("::", port)
	}
	return everywhere, nil
}

// localAddresses returns the addresses of this machine.
func localAddresses() []netip.Addr {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var list []netip.Addr
	for _, address := range interfaces {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			list = append(list, prefix.Addr())
		}
	}
	return list
}

// towards returns the address of this machine in the network through which it reaches
// the API server. Nothing is sent.
func towards(ctx context.Context, config *rest.Config) (netip.Addr, bool) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return netip.Addr{}, false
	}
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "udp", hostPort(base))
	if err != nil {
		return netip.Addr{}, false
	}
	defer func() { _ = connection.Close() }()
	local, err := netip.ParseAddrPort(connection.LocalAddr().String())
	if err != nil || local.Addr().IsLoopback() || local.Addr().Zone() != "" {
		return netip.Addr{}, false
	}
	return local.Addr().Unmap(), true
}

func hostPort(base *url.URL) string {
	if base.Port() != "" {
		return base.Host
	}
	return net.JoinHostPort(base.Hostname(), "443")
}
