package provider

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

// maxCandidates bounds the addresses that are probed.
const maxCandidates = 8

// candidate is an address at which the API server may reach this machine.
type candidate struct {
	// listen is the host:port to listen on, advertise the host to be called by;
	// empty is that of listen.
	listen, advertise string
	// what says which address it is: "loopback".
	what string
}

// String names the candidate: "172.18.0.1 (gateway of the kind network)".
func (c candidate) String() string {
	host := c.advertise
	if host == "" {
		host, _, _ = net.SplitHostPort(c.listen)
	}
	return host + " (" + c.what + ")"
}

// candidates returns the addresses to probe, those to be preferred first.
func (o opening) candidates(ctx context.Context) ([]candidate, error) {
	if o.transport.HookAddress != "" {
		one, err := given(ctx, o.transport.HookAddress)
		if err != nil {
			return nil, fmt.Errorf("use --hook-address %s: %w", o.transport.HookAddress, err)
		}
		return []candidate{one}, nil
	}
	list := []candidate{at(netip.MustParseAddr("127.0.0.1"), "loopback")}
	if o.cluster != nil {
		gateways, err := o.cluster.Gateways(ctx)
		if err != nil {
			o.progress("not told the gateway of the kind network: " + firstLine(err.Error()))
		}
		for _, gateway := range gateways {
			list = append(list, at(gateway, "gateway of the kind network"))
		}
	}
	if local, ok := towards(ctx, o.config); ok {
		list = append(list, at(local, "on the way to the API server"))
	}
	for _, address := range own() {
		if address.Is4() && !address.IsLoopback() && !address.IsLinkLocalUnicast() {
			list = append(list, at(address, "of this machine"))
		}
	}
	seen := map[string]bool{}
	list = slices.DeleteFunc(list, func(c candidate) bool {
		again := seen[c.listen]
		seen[c.listen] = true
		return again
	})
	return list[:min(len(list), maxCandidates)], nil
}

func at(address netip.Addr, what string) candidate {
	return candidate{listen: net.JoinHostPort(address.String(), "0"), what: what}
}

// ParseHookAddress checks a Transport.HookAddress: HOST or HOST:PORT, where an
// IPv6 address with a port stands in brackets.
func ParseHookAddress(text string) (host, port string, err error) {
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
		return "", "", errors.New("want the one address that the API server calls")
	}
	if host == "" || strings.ContainsAny(host, "/ ") {
		return "", "", errors.New("want HOST or HOST:PORT, without a scheme or a path")
	}
	return host, port, nil
}

// given is the candidate of an address that the operator gives.
func given(ctx context.Context, text string) (candidate, error) {
	host, port, err := ParseHookAddress(text)
	if err != nil {
		return candidate{}, err
	}
	everywhere := candidate{listen: net.JoinHostPort("0.0.0.0", port), advertise: host, what: "given"}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(found) == 0 {
		return everywhere, nil //nolint:nilerr // the API server may know a name that we do not
	}
	for _, address := range found {
		if address = address.Unmap(); slices.Contains(own(), address) {
			return candidate{listen: net.JoinHostPort(address.String(), port), advertise: host, what: "given"}, nil
		}
	}
	if found[0].Unmap().Is6() {
		everywhere.listen = net.JoinHostPort("::", port)
	}
	return everywhere, nil
}

// own returns the addresses of this machine.
func own() []netip.Addr {
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

// towards returns the address that this machine has in the network through which
// it reaches the API server. Nothing is sent.
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
