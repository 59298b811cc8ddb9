package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"google.golang.org/protobuf/proto"
)

const space = "0123456789abcdef"

// members returns a founder and other members, each admitted by the previous one.
func members(t testing.TB, n int, now time.Time) (ids []string, keys []crypto.PrivKey, passes []*Pass) {
	t.Helper()
	for range n {
		key, id := newKey(t)
		pass := &Pass{}
		if last := len(ids) - 1; last >= 0 {
			var err error
			if pass, err = passes[last].Grant(keys[last], space,
				&GrantBody{Subject: id, IssuedMs: now.UnixMilli()}); err != nil {
				t.Fatal(err)
			}
		}
		ids, keys, passes = append(ids, id), append(keys, key), append(passes, pass)
	}
	return ids, keys, passes
}

func TestPassLeadsFromTheFounder(t *testing.T) {
	now := time.Now()
	ids, keys, passes := members(t, 4, now)
	for i, p := range passes {
		a, err := p.Check(ids[0], space, ids[i], now.Add(1000*time.Hour))
		if err != nil || a.Depth != i || !a.Lasting || i > 0 && a.By != ids[i-1] {
			t.Errorf("member %d: %+v, %v", i, a, err)
		}
	}
	inv, err := NewInvite(keys[3], passes[3], ids[0], space, []string{"/ip4/127.0.0.1/tcp/1"}, now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	code, err := inv.Code()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseInvite(" " + code + "\n")
	if err != nil || !proto.Equal(got, inv) || !got.Expires().Equal(now.Add(time.Hour).Truncate(time.Millisecond)) {
		t.Fatalf("%v, %v", got, err)
	}
	_, guest := newKey(t)
	pass, err := got.Redeem(guest, now)
	if err != nil {
		t.Fatal(err)
	}
	a, err := pass.Check(ids[0], space, guest, now.Add(59*time.Minute))
	if err != nil || a.Lasting || a.Inviter != ids[3] || a.Depth != 5 {
		t.Fatalf("%+v, %v", a, err)
	}
}

// Every error of a pass or an invite has its own name.
func TestBadPasses(t *testing.T) {
	now := time.Now()
	ids, keys, passes := members(t, 3, now)
	founder := ids[0]
	strangerKey, stranger := newKey(t)
	grant := func(p *Pass, key crypto.PrivKey, space string, b *GrantBody) *Pass {
		t.Helper()
		out, err := p.Grant(key, space, b)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	invite, err := NewInvite(keys[2], passes[2], founder, space, nil, now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	redeemed, err := invite.Redeem(stranger, now)
	if err != nil {
		t.Fatal(err)
	}
	inviteSigner, _, err := inviteKey(invite.Seed)
	if err != nil {
		t.Fatal(err)
	}
	forged := proto.CloneOf(passes[2])
	forged.Grants[1].Body = bytes.Replace(forged.Grants[1].Body, []byte(ids[2]), []byte(stranger), 1)
	for name, c := range map[string]struct {
		pass *Pass
		id   string
		at   time.Time
		want error
	}{
		"none":                      {nil, stranger, now, ErrNoPass},
		"empty":                     {&Pass{}, stranger, now, ErrNoPass},
		"another peer's":            {passes[2], stranger, now, ErrOtherPeer},
		"another's redeemed invite": {redeemed, ids[1], now, ErrOtherPeer},
		"changed":                   {forged, stranger, now, ErrSignature},
		"by somebody who is no member": {grant(nil, strangerKey, space, &GrantBody{Subject: stranger}), stranger, now,
			ErrNoMember},
		"chained to somebody's pass": {grant(passes[1], strangerKey, space, &GrantBody{Subject: stranger}), stranger,
			now, ErrNoMember},
		"of another swarm": {grant(nil, keys[0], "another", &GrantBody{Subject: stranger}), stranger, now,
			ErrSignature},
		"expired": {grant(nil, keys[0], space,
			&GrantBody{Subject: stranger, ExpiresMs: now.UnixMilli()}), stranger, now, ErrExpired},
		"an invite that has expired": {redeemed, stranger, now.Add(time.Hour), ErrExpired},
		"the invite itself":          {invite.Pass, stranger, now, ErrNoMember},
		"an invite by who came by one": {grant(redeemed, strangerKey, space, &GrantBody{Subject: ids[1]}), ids[1], now,
			ErrNoMember},
		"an invite made by an invite": {grant(invite.Pass, inviteSigner, space,
			&GrantBody{Subject: stranger, Invite: true, ExpiresMs: now.Add(time.Minute).UnixMilli()}), stranger, now,
			ErrNoMember},
		"an invite that does not end": {grant(grant(nil, keys[0], space, &GrantBody{Subject: ids[1], Invite: true}),
			keys[1], space, &GrantBody{Subject: stranger}), stranger, now, ErrMalformed},
		"a chain that is too long": {&Pass{Grants: make([]*Grant, MaxGrants+1)}, stranger, now, ErrTooLarge},
		"a grant that is too long": {&Pass{Grants: []*Grant{{Body: make([]byte, MaxGrant+1)}}}, stranger, now,
			ErrTooLarge},
		"a grant that is no protobuf":   {&Pass{Grants: []*Grant{{Body: []byte{0xff}}}}, stranger, now, ErrMalformed},
		"a nil grant":                   {&Pass{Grants: []*Grant{nil}}, stranger, now, ErrNoMember},
		"the founder's, shown by other": {passes[0], ids[1], now, ErrNoPass},
	} {
		if a, err := c.pass.Check(founder, space, c.id, c.at); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	if _, err := NewInvite(strangerKey, passes[2], founder, space, nil, now, time.Hour); !errors.Is(err, ErrNoMember) {
		t.Errorf("an invite by a stranger: %v", err)
	}
	if _, err := NewInvite(strangerKey, redeemed, founder, space, nil, now, time.Hour); !errors.Is(err, ErrNoMember) {
		t.Errorf("an invite by one whose pass does not last: %v", err)
	}
	for _, life := range []time.Duration{0, -1, MaxInviteLife + 1} {
		if _, err := NewInvite(keys[0], nil, founder, space, nil, now, life); err == nil {
			t.Errorf("an invite for %s", life)
		}
	}
	for name, code := range map[string]string{"nothing": "", "another version": "echo-invite-2-AAAA",
		"no base64": invitePrefix + "!", "rubbish": invitePrefix + "_____",
		"too long": invitePrefix + strings.Repeat("A", MaxInvite)} {
		if inv, err := ParseInvite(code); err == nil {
			t.Errorf("%s: %v", name, inv)
		}
	}
}

// The proof of the swarm's key is valid for one prover, one verifier and one pair of nonces,
// and not with the roles exchanged.
func TestProofIsBound(t *testing.T) {
	key, n1, n2 := bytes.Repeat([]byte{1}, SwarmKeyLen), bytes.Repeat([]byte{2}, NonceLen),
		bytes.Repeat([]byte{3}, NonceLen)
	p := Proof(key, "a", "b", n1, n2)
	if !ProofGood(key, p, "a", "b", n1, n2) {
		t.Fatal("a good proof is refused")
	}
	for name, bad := range map[string]bool{
		"another prover":   ProofGood(key, p, "c", "b", n1, n2),
		"another verifier": ProofGood(key, p, "a", "c", n1, n2),
		"reflected":        ProofGood(key, p, "b", "a", n2, n1),
		"replayed":         ProofGood(key, p, "a", "b", n1, n1),
		"another key":      ProofGood(bytes.Repeat([]byte{9}, SwarmKeyLen), p, "a", "b", n1, n2),
		"an empty key":     ProofGood(nil, Proof(nil, "a", "b", n1, n2), "a", "b", n1, n2),
		"no proof":         ProofGood(key, nil, "a", "b", n1, n2),
	} {
		if bad {
			t.Errorf("%s is taken", name)
		}
	}
}

func FuzzMembership(f *testing.F) {
	now := time.Unix(1_800_000_000, 0)
	ids, keys, passes := members(f, 3, now)
	inv, err := NewInvite(keys[2], passes[2], ids[0], space, []string{"/ip4/127.0.0.1/tcp/1"}, now, time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	code, err := inv.Code()
	if err != nil {
		f.Fatal(err)
	}
	var hello bytes.Buffer
	if err := WriteAdmit(&hello, &Admit{Version: AdmitVersion, Nonce: make([]byte, NonceLen), Space: space,
		Pass: passes[2]}); err != nil {
		f.Fatal(err)
	}
	pass, err := proto.Marshal(passes[2])
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(code))
	f.Add(hello.Bytes())
	f.Add(pass)
	_, outsider := newKey(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if inv, err := ParseInvite(string(b)); err == nil {
			_, _ = inv.Check(now), inv.Expires()
			_, _ = inv.Redeem(outsider, now)
		}
		if p, err := ParsePass(b); err == nil {
			if _, err := p.Check(ids[0], space, outsider, now); err == nil {
				t.Fatal("an outsider got in")
			}
		}
		if m, err := ReadAdmit(bytes.NewReader(b)); err == nil {
			if _, err := m.Pass.Check(ids[0], space, outsider, now); err == nil {
				t.Fatal("an outsider got in")
			}
		}
	})
}
