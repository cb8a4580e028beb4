package providers

import (
	"net"
	"net/netip"
	"slices"
)

// maxCandidates limits the number of addresses to try.
const maxCandidates = 16

// candidates returns the addresses by which an API server may be able to call this process: the loopback address, and
// then the addresses of this machine in its networks, IPv4 first. The gateway of a kind network is one of them.
func candidates() []netip.Addr {
	list := []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	interfaces, _ := net.InterfaceAddrs() // without them, there is the loopback address
	for _, address := range interfaces {
		prefix, err := netip.ParsePrefix(address.String())
		if err == nil && prefix.Addr().IsGlobalUnicast() && !slices.Contains(list, prefix.Addr()) {
			list = append(list, prefix.Addr())
		}
	}
	slices.SortStableFunc(list, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
	return list[:min(len(list), maxCandidates)]
}
