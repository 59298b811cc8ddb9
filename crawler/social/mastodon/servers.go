package mastodon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"time"

	client "github.com/echo-node/echo-node/crawler/mastodon"
	"github.com/echo-node/echo-node/crawler/social/calls"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// Servers remembers what each server supports. It is kept in the store. Safe for concurrent use.
type Servers struct {
	store  *db.Store
	tokens *calls.Tokens
	log    *slog.Logger

	mu sync.Mutex
	by map[string]client.Server
}

// NewServers returns the Servers kept in a store.
func NewServers(s *db.Store, tokens *calls.Tokens, log *slog.Logger) *Servers {
	return &Servers{store: s, tokens: tokens, log: log, by: map[string]client.Server{}}
}

// Len returns how many servers are in memory.
func (s *Servers) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.by)
}

// TableOf returns the name of the table of limits for a software. Unknown software gets the table
// of Mastodon; most other software announces no limits.
func TableOf(software string) string {
	switch software {
	case "", "mastodon", "hometown":
		return "mastodon"
	case "gotosocial":
		return "gotosocial"
	}
	return "fediverse"
}

// serverRow is the prefix of the rows that hold a client.Server.
const serverRow = "api.server/"

// maxServers is how many servers are held in memory. All are in the store.
const maxServers = 10_000

// row returns the name of the row of a server. It depends on the tokens for the server.
func (s *Servers) row(host string) string {
	with := ""
	if sum := s.tokens.Sum(partition.Site("mastodon:" + host)); sum != "" {
		// results with an invalid credential do not hold for a valid one
		with = "with a credential " + sum
	}
	sum := sha256.Sum256([]byte(host + "\x00" + with))
	return serverRow + hex.EncodeToString(sum[:16])
}

// Get returns what is known of a server. known is false if that is nothing or outdated. Outdated
// info is returned all the same, as the software is probably the same.
func (s *Servers) Get(host string, now time.Time) (info client.Server, known bool, err error) {
	s.mu.Lock()
	info, ok := s.by[host]
	s.mu.Unlock()
	if ok {
		return info, info.Fresh(now), nil
	}
	b, err := s.store.Meta(s.row(host))
	if errors.Is(err, store.ErrNotExist) {
		return client.Server{}, false, nil
	}
	if err != nil {
		return client.Server{}, false, err
	}
	if info, err = client.DecodeServer(b); err != nil {
		s.log.Warn("what is known of a server is looked up again", "server", host, "err", err)
		return client.Server{}, false, nil
	}
	s.remember(host, info)
	return info, info.Fresh(now), nil
}

// learn stores what a probe found about a server.
func (s *Servers) learn(host string, info client.Server) error {
	if err := s.store.SetMeta(s.row(host), info.Encode()); err != nil {
		return err
	}
	s.remember(host, info)
	return nil
}

func (s *Servers) remember(host string, info client.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.by) >= maxServers {
		clear(s.by)
	}
	s.by[host] = info
}
