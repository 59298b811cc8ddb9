package wire

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
)

const charterDomain = "echo-node/charter/1"

// SealCharter signs c with its founder's key.
func SealCharter(c partition.Charter, key crypto.PrivKey) (*SealedCharter, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("seal charter: %w", err)
	}
	sig, err := key.Sign(signed(charterDomain, "", body))
	if err != nil {
		return nil, fmt.Errorf("seal charter: %w", err)
	}
	s := &SealedCharter{Charter: body, Signature: sig}
	if _, err := s.Open(); err != nil { // the key must be the founder's
		return nil, fmt.Errorf("seal charter: %w", err)
	}
	return s, nil
}

// Open checks the signature of the founder named in the charter, and the charter's own rules.
// The caller decides whether to trust that founder.
func (m *SealedCharter) Open() (partition.Charter, error) {
	var c partition.Charter
	if len(m.Charter) > MaxCharter {
		return c, over("charter", len(m.Charter), MaxCharter)
	}
	if err := strictjson.Unmarshal(m.Charter, &c); err != nil {
		return c, fmt.Errorf("charter: %w: %v", ErrMalformed, err)
	}
	if err := verify(c.Founder, m.Signature, signed(charterDomain, "", m.Charter)); err != nil {
		return partition.Charter{}, fmt.Errorf("charter of founder %.64q: %w", c.Founder, err)
	}
	if err := c.Validate(); err != nil {
		return partition.Charter{}, fmt.Errorf("charter: %w", err)
	}
	return c, nil
}

// WriteCharter sends m as one frame.
func WriteCharter(w io.Writer, m *SealedCharter) error {
	if _, err := writeMessage(w, m); err != nil {
		return fmt.Errorf("write charter: %w", err)
	}
	return nil
}

// ReadCharter reads one frame. It does not check the charter in it: call Open for that.
func ReadCharter(r io.Reader) (*SealedCharter, error) {
	var m SealedCharter
	if _, err := readMessage(r, &m); err != nil {
		return nil, fmt.Errorf("read charter: %w", err)
	}
	if len(m.Charter) > MaxCharter {
		return nil, fmt.Errorf("read charter: %w", over("charter", len(m.Charter), MaxCharter))
	}
	return &m, nil
}
