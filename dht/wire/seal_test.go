package wire

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/echo-node/echo-node/partition"
)

func newKey(t testing.TB) (crypto.PrivKey, string) {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, id.String()
}

func described(id string) Descriptor {
	return Descriptor{Sequence: 7, Expires: time.UnixMilli(1_800_000_000_000),
		Member: partition.Member{ID: id, Capacity: 3, LoadStep: 2,
			Location: &partition.Point{Lat: 38.72, Lon: -9.14}, Version: "v1",
			Addrs: []string{"/ip4/192.0.2.1/tcp/4001", "/ip4/192.0.2.1/udp/4001/quic-v1"}}}
}

func TestDescriptorRoundTrip(t *testing.T) {
	key, id := newKey(t)
	want := described(id)
	sealed, err := want.Seal(key, "space", MaxDescriptor)
	if err != nil {
		t.Fatal(err)
	}
	got, err := OpenDescriptor(id, "space", sealed, want.Expires)
	if err != nil || !cmp.Equal(got, want) {
		t.Fatalf("%v\n%s", err, cmp.Diff(got, want))
	}
	if _, err := OpenDescriptor(id, "space", sealed, want.Expires.Add(time.Millisecond)); !errors.Is(err, ErrExpired) {
		t.Errorf("after its time: %v", err)
	}
}

func TestDescriptorForgeries(t *testing.T) {
	key, id := newKey(t)
	other, otherID := newKey(t)
	sealed, err := described(id).Seal(key, "space", MaxDescriptor)
	if err != nil {
		t.Fatal(err)
	}
	byOther, err := described(id).Seal(other, "space", MaxDescriptor)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		id, space string
		b         []byte
		want      error
	}{
		"another's key":   {id, "space", byOther, ErrSignature},
		"another's name":  {otherID, "space", sealed, ErrSignature},
		"another's swarm": {id, "spac", sealed, ErrSignature},
		"no peer id":      {"x", "space", sealed, ErrMalformed},
		"too short":       {id, "space", sealed[:60], ErrMalformed},
		"nothing":         {id, "space", nil, ErrMalformed},
		"too long":        {id, "space", make([]byte, MaxDescriptor+1), ErrTooLarge},
	} {
		if _, err := OpenDescriptor(c.id, c.space, c.b, time.Time{}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	for i := range sealed { // every bit counts
		bad := append([]byte(nil), sealed...)
		bad[i] ^= 1
		if _, err := OpenDescriptor(id, "space", bad, time.Time{}); err == nil {
			t.Fatalf("byte %d changed, and it passes", i)
		}
	}
}

// Declared values beyond the bounds are clamped, invalid ones are refused, and addresses are
// left out to stay within the limit.
func TestDescriptorBounds(t *testing.T) {
	key, id := newKey(t)
	d := described(id)
	d.Member.Capacity, d.Member.LoadStep, d.Member.ZoneDepth = 1000, 1000, 1000
	for i := range 40 {
		d.Member.Addrs = append(d.Member.Addrs, fmt.Sprintf("/ip6/2001:db8::%x/udp/4001/quic-v1", i))
	}
	const limit = 512
	sealed, err := d.Seal(key, "", limit)
	if err != nil || len(sealed) > limit {
		t.Fatalf("%d bytes, %v", len(sealed), err)
	}
	got, err := OpenDescriptor(id, "", sealed, time.Time{})
	if err != nil || got.Member.Capacity != MaxCapacity || got.Member.LoadStep != MaxLoadStep ||
		got.Member.ZoneDepth != partition.MaxZoneDepth {
		t.Fatalf("%+v, %v", got, err)
	}
	if n := len(got.Member.Addrs); n < 8 || n > MaxAddrs || got.Member.Addrs[0] != d.Member.Addrs[0] {
		t.Errorf("%d addresses are left", n)
	}
	for _, p := range []partition.Point{{Lat: 91}, {Lon: 181}, {Lat: math.NaN()}, {Lon: math.Inf(-1)}} {
		bad := described(id)
		bad.Member.Location = &p
		if _, err := bad.Seal(key, "", MaxDescriptor); err == nil {
			t.Errorf("sealed %v", p)
		}
	}
	if _, err := pointFromProto(&GeoPoint{LatE7: math.MaxInt32}); !errors.Is(err, ErrMalformed) {
		t.Errorf("a latitude of 214: %v", err)
	}
	bad := described(id)
	bad.Member.Addrs = []string{"nonsense"}
	if _, err := bad.Seal(key, "", MaxDescriptor); err == nil {
		t.Error("sealed a bad address")
	}
	if _, err := described(id).Seal(key, "", 10); !errors.Is(err, ErrTooLarge) {
		t.Errorf("sealed into ten bytes: %v", err)
	}
}

func FuzzOpenDescriptor(f *testing.F) {
	key, id := newKey(f)
	sealed, err := described(id).Seal(key, "", MaxDescriptor)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed[sigLen:])
	f.Fuzz(func(t *testing.T, body []byte) {
		// Sign it again, so that the fuzzer passes the signature check.
		sig, err := key.Sign(signed(descriptorDomain, "", body))
		if err != nil {
			t.Fatal(err)
		}
		d, err := OpenDescriptor(id, "", append(sig, body...), time.Time{})
		if err != nil {
			return
		}
		m := d.Member
		if m.Capacity < MinCapacity || m.Capacity > MaxCapacity || m.LoadStep < 0 || m.LoadStep > MaxLoadStep ||
			m.ZoneDepth < 0 || m.ZoneDepth > partition.MaxZoneDepth || len(m.Addrs) > MaxAddrs {
			t.Fatalf("out of bounds: %+v", m)
		}
		if l := m.Location; l != nil && !(math.Abs(l.Lat) <= 90 && math.Abs(l.Lon) <= 180) {
			t.Fatalf("not on the globe: %+v", l)
		}
	})
}

func FuzzOpenCharter(f *testing.F) {
	key, id := newKey(f)
	s, err := SealCharter(partition.DefaultCharter("test", id), key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(s.Charter)
	f.Fuzz(func(t *testing.T, body []byte) {
		sig, err := key.Sign(signed(charterDomain, "", body))
		if err != nil {
			t.Fatal(err)
		}
		c, err := (&SealedCharter{Charter: body, Signature: sig}).Open()
		if err == nil && c.Founder != id {
			t.Fatalf("a charter of %q passes with another's signature", c.Founder)
		}
	})
}
