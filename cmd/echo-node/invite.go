package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/dht/wire"
)

type inviteCmd struct {
	Data    string `default:"echo-data" placeholder:"DIR" help:"Data directory of the peer that invites. It may be running or not."`
	Expires days   `default:"7d" placeholder:"7d" help:"How long the invite is valid: 12h, 7d, at most 366d. Peers that joined with it stay members."`
}

// Help returns the text below the usage.
func (inviteCmd) Help() string {
	return `Examples:
  echo-node run --data a --private
  echo-node invite --data a > code
  echo-node run --data b --api 127.0.0.1:7701 --invite code

The code is a secret: everybody who has it can add peers until it expires.`
}

// Run prints an invitation code.
func (c *inviteCmd) Run(p *program, g *globals) error {
	addrs, err := os.ReadFile(filepath.Join(c.Data, "addrs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("addresses: %w", err)
	}
	code, err := dht.InviteFrom(c.Data, strings.Fields(string(addrs)), time.Duration(c.Expires))
	if err != nil {
		return err
	}
	until := time.Now().Add(time.Duration(c.Expires)).UTC().Truncate(time.Second)
	return p.print(g, map[string]any{"invite": code, "expires": until}, func(w io.Writer) { fmt.Fprintln(w, code) })
}

// days is a duration that may be given in days: 7d, 36h.
type days time.Duration

// UnmarshalText parses a duration.
func (d *days) UnmarshalText(b []byte) error {
	text := string(b)
	if n, ok := strings.CutSuffix(text, "d"); ok {
		text = n + "h"
	}
	v, err := time.ParseDuration(text)
	if text != string(b) {
		v *= 24
	}
	if err != nil || v <= 0 || v > wire.MaxInviteLife {
		return fmt.Errorf("%q: give a time up to 366d, as 12h or 7d", b)
	}
	*d = days(v)
	return nil
}

// readInvite takes a code, or the name of a file that contains one.
func readInvite(code string) (string, error) {
	if code == "" {
		return "", nil
	}
	if _, err := wire.ParseInvite(code); err == nil {
		return code, nil
	}
	f, err := os.Open(code)
	if err != nil {
		return "", usage("--invite: neither a code nor a file that holds one")
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, wire.MaxInvite))
	if err != nil {
		return "", fmt.Errorf("--invite: %w", err)
	}
	if _, err := wire.ParseInvite(string(b)); err != nil {
		return "", usage("--invite %s: %w", code, err)
	}
	return strings.TrimSpace(string(b)), nil
}

// readSwarmKey reads the key of a private swarm. For a founder it makes the key.
func readSwarmKey(file string, founds bool) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && founds {
		key := [wire.SwarmKeyLen]byte{}
		if _, err := rand.Read(key[:]); err != nil {
			return nil, fmt.Errorf("--swarm-key: %w", err)
		}
		if err := os.WriteFile(file, []byte(hex.EncodeToString(key[:])+"\n"), 0o600); err != nil {
			return nil, fmt.Errorf("--swarm-key: %w", err)
		}
		return key[:], nil
	}
	if err != nil {
		return nil, usage("--swarm-key: %w", err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(key) != wire.SwarmKeyLen {
		return nil, usage("--swarm-key %s: not %d hex digits", file, 2*wire.SwarmKeyLen)
	}
	return key, nil
}
