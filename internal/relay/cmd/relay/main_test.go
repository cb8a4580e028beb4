package main

import (
	"context"
	"net"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for want, addresses := range map[string][]string{"": nil, "context canceled": {"127.0.0.1:0"}, "listen": {"127.0.0.1:none"}} {
		t.Run(want, func(t *testing.T) {
			here, there := net.Pipe()
			defer there.Close()
			go func() { _, _ = there.Read(make([]byte, 100)) }()
			err := run(ended, addresses, here)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}
