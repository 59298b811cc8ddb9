package wire

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"
)

// Versions and limits of admission.
const (
	InviteVersion = 1
	AdmitVersion  = 1
	// MaxGrants is the largest number of grants from the founder to a peer.
	MaxGrants = 32
	// MaxGrant is the largest body of a grant in bytes.
	MaxGrant = 512
	// MaxInvite is the longest invitation code in bytes. It also limits a kept pass, and each
	// message of a handshake.
	MaxInvite = 32 << 10
	// MaxInviteLife is the longest time for which an invite may be valid.
	MaxInviteLife = 366 * 24 * time.Hour
	// NonceLen and SwarmKeyLen are in bytes.
	NonceLen    = 32
	SwarmKeyLen = 32
)

// Each signature and proof begins with its domain, so that it is valid for no other purpose.
const (
	grantDomain  = "echo-node/grant/1\n"
	proofDomain  = "echo-node/swarm-key/1\n"
	invitePrefix = "echo-invite-1-"
)

// The errors of a pass, in addition to ErrSignature, ErrExpired, ErrTooLarge and ErrMalformed.
var (
	ErrNoPass    = errors.New("no pass")
	ErrOtherPeer = errors.New("the pass is another peer's")
	ErrNoMember  = errors.New("the pass does not come from a member")
	ErrSpace     = errors.New("another swarm")
)

// Membership is the content of a valid pass, for display.
type Membership struct {
	By      string    // who admitted the peer; "" for the founder
	Inviter string    // who made the invite, if there was one
	Since   time.Time // zero for the founder
	Depth   int       // number of grants from the founder
	Lasting bool      // false: an invite that a member must still replace by a lasting pass
}

// Check reports whether the pass admits subject, at the time now, to the swarm with that
// founder and name space (the digest of its charter). In a valid chain, the founder signed the
// first grant, and the subject of each grant signed the next one. None has expired, and the
// last is for subject. An invite may only be the last but one grant: its key admits peers
// directly, and they may not admit others through it.
func (p *Pass) Check(founder, space, subject string, now time.Time) (Membership, error) {
	bodies, err := p.open(founder, space, now)
	if err != nil {
		return Membership{}, fmt.Errorf("pass: %w", err)
	}
	if len(bodies) == 0 {
		if subject == founder {
			return Membership{Lasting: true}, nil
		}
		return Membership{}, fmt.Errorf("pass: %w", ErrNoPass)
	}
	a := Membership{Depth: len(bodies), Lasting: true}
	// The last grant is signed with the key of an invite.
	if n := len(bodies); n > 1 && bodies[n-2].Invite {
		a.Lasting, a.Inviter = false, bodies[n-2].Issuer
	}
	last := bodies[len(bodies)-1]
	if last.Invite {
		return Membership{}, fmt.Errorf("pass: an invite is no pass: %w", ErrNoMember)
	}
	// A pass that somebody copied is of no use.
	if last.Subject != subject {
		return Membership{}, fmt.Errorf("pass for %.64q shown by %.64q: %w", last.Subject, subject, ErrOtherPeer)
	}
	a.By, a.Since = last.Issuer, time.UnixMilli(last.IssuedMs)
	if a.Lasting {
		a.Inviter = last.Inviter
	}
	return a, nil
}

// open checks each grant and the chain, but not the subject of the last grant.
func (p *Pass) open(founder, space string, now time.Time) ([]*GrantBody, error) {
	grants := p.GetGrants()
	if len(grants) > MaxGrants {
		return nil, over("grants of a pass", len(grants), MaxGrants)
	}
	issuer := founder
	bodies := make([]*GrantBody, 0, len(grants))
	for i, g := range grants {
		if len(g.GetBody()) > MaxGrant {
			return nil, over("grant", len(g.Body), MaxGrant)
		}
		var b GrantBody
		if err := proto.Unmarshal(g.GetBody(), &b); err != nil {
			return nil, fmt.Errorf("grant: %w: %v", ErrMalformed, err)
		}
		// The issuer must be the subject of the grant before, or the founder.
		if b.Issuer != issuer {
			return nil, fmt.Errorf("grant by %.64q, not by %.64q: %w", b.Issuer, issuer, ErrNoMember)
		}
		if err := verify(b.Issuer, g.GetSignature(), signed(grantDomain, space, g.GetBody())); err != nil {
			return nil, fmt.Errorf("grant by %.64q: %w", b.Issuer, err)
		}
		// After an invite there is exactly one grant: that of the peer that came by it.
		if b.Invite && i > 0 && bodies[i-1].Invite || i > 1 && bodies[i-2].Invite {
			return nil, fmt.Errorf("somebody came by an invite and lets others in: %w", ErrNoMember)
		}
		// Anybody with the code can use an invite, so it must end.
		if b.Invite && (b.ExpiresMs == 0 || b.ExpiresMs-b.IssuedMs > MaxInviteLife.Milliseconds()) {
			return nil, fmt.Errorf("an invite good for longer than %s: %w", MaxInviteLife, ErrMalformed)
		}
		if b.ExpiresMs != 0 && now.UnixMilli() >= b.ExpiresMs {
			return nil, fmt.Errorf("grant: %w at %s", ErrExpired,
				time.UnixMilli(b.ExpiresMs).UTC().Format(time.RFC3339))
		}
		issuer = b.Subject
		bodies = append(bodies, &b)
	}
	return bodies, nil
}

// Grant appends a grant by the holder of p. key must be the holder's key.
func (p *Pass) Grant(key crypto.PrivKey, space string, body *GrantBody) (*Pass, error) {
	issuer, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("grant: %w", err)
	}
	if len(p.GetGrants()) >= MaxGrants {
		return nil, fmt.Errorf("grant: %w", over("grants of a pass", len(p.Grants)+1, MaxGrants))
	}
	body.Issuer = issuer.String()
	b, err := proto.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("grant: %w", err)
	}
	if len(b) > MaxGrant {
		return nil, fmt.Errorf("grant: %w", over("grant", len(b), MaxGrant))
	}
	sig, err := key.Sign(signed(grantDomain, space, b))
	if err != nil {
		return nil, fmt.Errorf("grant: %w", err)
	}
	return &Pass{Grants: append(append([]*Grant(nil), p.GetGrants()...), &Grant{Body: b, Signature: sig})}, nil
}

// NewInvite returns an invitation from the holder of pass. It is valid for the duration life.
func NewInvite(key crypto.PrivKey, pass *Pass, founder, space string, addrs []string, now time.Time,
	life time.Duration) (*Invite, error) {
	if life <= 0 || life > MaxInviteLife {
		return nil, fmt.Errorf("new invite: good for %s: give up to %s", life, MaxInviteLife)
	}
	seed := make([]byte, ed25519.SeedSize)
	if _, err := rand.Read(seed); err != nil {
		return nil, fmt.Errorf("new invite: %w", err)
	}
	_, id, err := inviteKey(seed)
	if err != nil {
		return nil, fmt.Errorf("new invite: %w", err)
	}
	own, err := pass.Grant(key, space, &GrantBody{Subject: id, IssuedMs: now.UnixMilli(),
		ExpiresMs: now.Add(life).UnixMilli(), Invite: true})
	if err != nil {
		return nil, fmt.Errorf("new invite: %w", err)
	}
	inv := &Invite{Version: InviteVersion, Space: space, Founder: founder, Pass: own, Seed: seed,
		Addrs: addrs[:min(len(addrs), MaxAddrs)]}
	if err := inv.Check(now); err != nil {
		return nil, fmt.Errorf("new invite: %w", err)
	}
	return inv, nil
}

// inviteKey returns the private key that has this seed, and its peer id.
func inviteKey(seed []byte) (crypto.PrivKey, string, error) {
	if len(seed) != ed25519.SeedSize {
		return nil, "", fmt.Errorf("seed of %d bytes: %w", len(seed), ErrMalformed)
	}
	key, err := crypto.UnmarshalEd25519PrivateKey(ed25519.NewKeyFromSeed(seed))
	if err != nil {
		return nil, "", err
	}
	id, err := peer.IDFromPrivateKey(key)
	return key, id.String(), err
}

// Check reports whether the invite is complete and valid at the time now.
func (m *Invite) Check(now time.Time) error {
	if m.GetVersion() != InviteVersion {
		return fmt.Errorf("invite version %d, this program knows %d: %w", m.GetVersion(), InviteVersion, ErrVersion)
	}
	if m.Space == "" || len(m.Space) > MaxVersion {
		return fmt.Errorf("invite: no swarm: %w", ErrMalformed)
	}
	for _, a := range m.Addrs {
		if err := checkText("address of an invite", a, MaxPeerID); err != nil {
			return err
		}
	}
	_, id, err := inviteKey(m.Seed)
	if err != nil {
		return fmt.Errorf("invite: %w", err)
	}
	bodies, err := m.Pass.open(m.Founder, m.Space, now)
	if err != nil {
		return fmt.Errorf("invite: %w", err)
	}
	// The chain must end with the grant for the key in the code.
	if len(bodies) == 0 || !bodies[len(bodies)-1].Invite || bodies[len(bodies)-1].Subject != id {
		return fmt.Errorf("invite: its key is not invited: %w", ErrNoMember)
	}
	return nil
}

// Redeem returns a pass for the peer with that id. The pass is valid until the invite expires.
// A member that sees it issues a lasting one.
func (m *Invite) Redeem(id string, now time.Time) (*Pass, error) {
	key, _, err := inviteKey(m.Seed)
	if err != nil {
		return nil, fmt.Errorf("redeem invite: %w", err)
	}
	p, err := m.Pass.Grant(key, m.Space, &GrantBody{Subject: id, IssuedMs: now.UnixMilli()})
	if err != nil {
		return nil, fmt.Errorf("redeem invite: %w", err)
	}
	return p, nil
}

// Expires returns when the invite ends. It returns the zero time for an invalid invite.
func (m *Invite) Expires() time.Time {
	grants := m.GetPass().GetGrants()
	if len(grants) == 0 {
		return time.Time{}
	}
	var b GrantBody
	if err := proto.Unmarshal(grants[len(grants)-1].GetBody(), &b); err != nil {
		return time.Time{}
	}
	return time.UnixMilli(b.ExpiresMs)
}

// Code returns the invite as one word for the invited person. It is a secret until it expires.
func (m *Invite) Code() (string, error) {
	b, err := proto.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("invite code: %w", err)
	}
	return invitePrefix + base64.RawURLEncoding.EncodeToString(b), nil
}

// ParseInvite parses a code. It does not check whether the invite is still valid; see Check.
func ParseInvite(code string) (*Invite, error) {
	code = strings.TrimSpace(code)
	if len(code) > MaxInvite {
		return nil, fmt.Errorf("invite: %w", over("code", len(code), MaxInvite))
	}
	text, ok := strings.CutPrefix(code, invitePrefix)
	if !ok {
		return nil, fmt.Errorf("invite: does not begin with %s: %w", invitePrefix, ErrVersion)
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("invite: %w: %v", ErrMalformed, err)
	}
	var m Invite
	if err := decode(b, &m); err != nil {
		return nil, fmt.Errorf("invite: %w", err)
	}
	return &m, nil
}

// ParsePass parses the result of proto.Marshal of a Pass.
func ParsePass(b []byte) (*Pass, error) {
	var p Pass
	if err := decode(b, &p); err != nil {
		return nil, fmt.Errorf("pass: %w", err)
	}
	return &p, nil
}

// decode is proto.Unmarshal with the limits checked first.
func decode(b []byte, m proto.Message) error {
	if len(b) > MaxInvite {
		return over("bytes", len(b), MaxInvite)
	}
	if err := scan(b, m.ProtoReflect().Descriptor()); err != nil {
		return err
	}
	if err := proto.Unmarshal(b, m); err != nil {
		return fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	return nil
}

// Proof proves that prover has the swarm's key. It is valid only for verifier and only in
// response to its nonce. Both ids are those that the connection has proven.
func Proof(key []byte, prover, verifier string, proverNonce, verifierNonce []byte) []byte {
	h := hmac.New(sha256.New, key)
	// Each part has its length before it, so that no two lists of parts give the same bytes.
	for _, part := range [][]byte{[]byte(proofDomain), []byte(prover), []byte(verifier), proverNonce, verifierNonce} {
		_, _ = h.Write([]byte{byte(len(part) >> 8), byte(len(part))}) // a hash never fails
		_, _ = h.Write(part)
	}
	return h.Sum(nil)
}

// ProofGood checks a Proof in constant time. It returns false for an empty key.
func ProofGood(key, proof []byte, prover, verifier string, proverNonce, verifierNonce []byte) bool {
	return len(key) == SwarmKeyLen && hmac.Equal(proof, Proof(key, prover, verifier, proverNonce, verifierNonce))
}

// WriteAdmit sends m as one frame.
func WriteAdmit(w io.Writer, m *Admit) error {
	if _, err := writeMessage(w, m); err != nil {
		return fmt.Errorf("write admission: %w", err)
	}
	return nil
}

// ReadAdmit reads one frame, of at most MaxInvite bytes.
func ReadAdmit(r io.Reader) (*Admit, error) {
	var m Admit
	if _, err := readMessage(io.LimitReader(r, MaxInvite), &m); err != nil {
		return nil, fmt.Errorf("read admission: %w", err)
	}
	if n := len(m.Nonce); n != 0 && n != NonceLen {
		return nil, fmt.Errorf("read admission: nonce of %d bytes: %w", n, ErrMalformed)
	}
	for what, s := range map[string]string{"swarm": m.Space, "reason": m.Refused} {
		if err := checkText(what, s, MaxVersion); err != nil {
			return nil, fmt.Errorf("read admission: %w", err)
		}
	}
	return &m, nil
}
