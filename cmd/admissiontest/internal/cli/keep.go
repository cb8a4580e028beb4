package cli

import (
	"context"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/served"
)

// keeper keeps an API server for all runs of this process. If another process serves a suitable API
// server, the runs use that one.
type keeper struct {
	// fresh is true if an API server of another process must not be used.
	fresh bool
	note  func(line string)

	key    string
	server *served.Server // nil before the first start, and after stop
}

// session begins a Session on a server with these binaries. If there is none, it stops the server
// that it has and starts a new one.
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
