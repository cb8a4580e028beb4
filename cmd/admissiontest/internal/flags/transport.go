package flags

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// transportFlags choose how the API server reaches the Hooks.
type transportFlags struct {
	mode, image, address string
	sources              []string
	parsed               []netip.Prefix // the sources
}

// add adds --transport, --hook-image and --hook-address to a command.
func (f *transportFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.mode, "transport", providers.TransportAuto, "how the API server reaches the Hooks: url (on this machine), service (through a pod in the cluster) or auto (url if it works, otherwise service)")
	flags.StringVar(&f.image, "hook-image", "", "image of the pod for --transport service, made by \"admissiontest image\" (default on a kind cluster of this machine: built and loaded into the nodes)")
	flags.StringSliceVar(&f.sources, "hook-source", nil, "CIDR from which the API server connects to pods: a NetworkPolicy blocks all other connections to the pod for --transport service (repeatable)")
	flags.StringVar(&f.address, "hook-address", "", "HOST[:PORT] at which the API server reaches this machine (default: the first address of this machine that works)")
	Complete(command, "transport", providers.Transports()...)
}

// check returns an error for a bad value or combination.
func (f *transportFlags) check() error {
	if !slices.Contains(providers.Transports(), f.mode) {
		return exit.Usagef("--transport %q: want %s%s", f.mode, strings.Join(providers.Transports(), ", "), suggest.DidYouMean(f.mode, providers.Transports()))
	}
	if f.address != "" {
		if f.mode == framework.TransportService {
			return exit.Usagef("--hook-address cannot be combined with --transport service, which uses the address of a Service")
		}
		if _, _, err := providers.ParseHookAddress(f.address); err != nil {
			return exit.Usagef("--hook-address %q: %w", f.address, err)
		}
	}
	if f.image != "" && f.mode == framework.TransportURL {
		return exit.Usagef("--hook-image cannot be combined with --transport url, which runs no pod")
	}
	if len(f.sources) > 0 && f.mode == framework.TransportURL {
		return exit.Usagef("--hook-source cannot be combined with --transport url, which runs no pod")
	}
	for _, source := range f.sources {
		prefix, err := netip.ParsePrefix(source)
		if err != nil {
			return exit.Usagef("--hook-source %q: want addresses in CIDR notation, such as 10.0.0.0/24 or 10.0.0.1/32", source)
		}
		f.parsed = append(f.parsed, prefix.Masked())
	}
	return nil
}

// options returns the transport for package providers.
func (f *transportFlags) options() providers.Transport {
	return providers.Transport{Mode: f.mode, HookImage: f.image, HookSources: f.parsed, HookAddress: f.address}
}
