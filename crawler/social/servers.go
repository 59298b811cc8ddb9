package social

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/echo-node/echo-node/crawler/mastodon"
	"github.com/echo-node/echo-node/store"
)

// serverRow is what the names of rows begin with that hold a mastodon.Server.
const serverRow = "api.server/"

// maxServers is how many servers are remembered in memory; all are in the store.
const maxServers = 10_000

func (s *Source) serverKey(host string) string {
	with := ""
	if len(s.tokens[host]) > 0 {
		with = "with a credential"
	}
	sum := sha256.Sum256([]byte(host + "\x00" + with))
	return serverRow + hex.EncodeToString(sum[:16])
}

// server is what is known of a server; known is false when that is nothing, or too long ago.
// What was once known is given all the same: its software has not changed.
func (s *Source) server(host string, now time.Time) (info mastodon.Server, known bool, err error) {
	s.mu.Lock()
	info, ok := s.servers[host]
	s.mu.Unlock()
	if ok {
		return info, info.Fresh(now), nil
	}
	b, err := s.o.Store.Meta(s.serverKey(host))
	if errors.Is(err, store.ErrNotExist) {
		return mastodon.Server{}, false, nil
	}
	if err != nil {
		return mastodon.Server{}, false, err
	}
	if info, err = mastodon.DecodeServer(b); err != nil {
		s.o.Logger.Warn("what was known of a server is found out anew", "server", host, "err", err)
		return mastodon.Server{}, false, nil
	}
	s.remember(host, info)
	return info, info.Fresh(now), nil
}

// learn keeps what a server was found to be.
func (s *Source) learn(host string, info mastodon.Server) error {
	if err := s.o.Store.SetMeta(s.serverKey(host), info.Encode()); err != nil {
		return err
	}
	s.remember(host, info)
	return nil
}

func (s *Source) remember(host string, info mastodon.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.servers) >= maxServers {
		clear(s.servers)
	}
	s.servers[host] = info
}
