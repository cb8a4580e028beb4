package cli

import (
	"context"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/served"
)

// keeper keeps an API server for the runs of this process, unless another process serves one.
type keeper struct {
	// fresh is true if that of another process must not be used.
	fresh bool
	note  func(line string)

	key    string
	server *served.Server // nil before the first use, and after it failed
}

// session begins a Session. It starts an API server if there is none, or one with other programs.
func (k *keeper) session(ctx context.Context, binaries assets.Assets) (*served.Session, error) {
	key, err := served.Key(binaries)
	if err != nil {
		return nil, err
	}
	if !k.fresh {
		if session, err := (served.Place{}).Find(ctx, key); err == nil && session != nil {
			return session, k.stop()
		}
	}
	if k.server != nil && k.key == key {
		if session, err := k.server.Use(ctx); err == nil || ctx.Err() != nil {
			return session, err
		}
	}
	if err := k.stop(); err != nil {
		k.note(err.Error())
	}
	k.note("starting API server v" + binaries.Version)
	if k.server, err = served.Start(ctx, served.Options{Assets: binaries, Profile: providers.DefaultProfile}); err != nil {
		return nil, err
	}
	k.key = key
	return k.server.Use(ctx)
}

// stop stops the API server, if there is one.
func (k *keeper) stop() error {
	if k.server == nil {
		return nil
	}
	err := k.server.Stop()
	k.server = nil
	return err
}
