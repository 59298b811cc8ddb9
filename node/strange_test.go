package node

import (
	"crypto/rand"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/echo-node/echo-node/dht"
)

// strangeID returns the id of a peer that nobody knows.
func strangeID(t *testing.T) string {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return dht.PeerID(key)
}
