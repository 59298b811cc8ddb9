package member

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/libp2p/go-libp2p/core/network"
)

// pipe is a network.Stream with the methods that a guard needs.
type pipe struct {
	network.Stream
	io.Reader
	reset bool
}

func (p *pipe) Read(b []byte) (int, error) { return p.Reader.Read(b) }
func (p *pipe) Reset() error               { p.reset = true; return nil }
func (p *pipe) Close() error               { return nil }

func push(t testing.TB, h pushHeader, rest int) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteByte(kindPushPull)
	if err := codec.NewEncoder(&b, &codec.MsgpackHandle{}).Encode(h); err != nil {
		t.Fatal(err)
	}
	return append(b.Bytes(), make([]byte, rest)...)
}

func TestGuardPassesWhatAListSends(t *testing.T) {
	for name, b := range map[string][]byte{
		"ping": {kindPing, 1, 2, 3}, "ack": {kindAck, 1}, "error": {kindError},
		"push": push(t, pushHeader{Nodes: MaxStates, Join: true}, 300),
	} {
		var tr traffic
		got, err := io.ReadAll(newGuard(&pipe{Reader: bytes.NewReader(b)}, &tr))
		if err != nil || !bytes.Equal(got, b) {
			t.Errorf("%s: read %d of %d bytes: %v", name, len(got), len(b), err)
		}
	}
}

func TestGuardRefuses(t *testing.T) {
	for name, b := range map[string][]byte{
		"user":            {8, 0},
		"compressed":      {9, 0},
		"encrypted":       {10, 0},
		"labelled":        {244, 1, 'x'},
		"compound":        {kindCompound, 1, 0, 1, 0},
		"too many states": push(t, pushHeader{Nodes: MaxStates + 1}, 0),
		"negative states": push(t, pushHeader{Nodes: -1}, 0),
		"user state":      push(t, pushHeader{UserStateLen: 1}, 1),
		"no header":       {kindPushPull, 0xc1},
		"a long header":   append([]byte{kindPushPull, 0xdb, 0, 0, 1, 0}, make([]byte, 256)...),
	} {
		var tr traffic
		p := &pipe{Reader: bytes.NewReader(b)}
		if _, err := io.ReadAll(newGuard(p, &tr)); !errors.Is(err, errRefused) || !p.reset || tr.refused.Load() != 1 {
			t.Errorf("%s: %v, reset %v, counted %d", name, err, p.reset, tr.refused.Load())
		}
	}
	var tr traffic
	endless := io.MultiReader(bytes.NewReader(push(t, pushHeader{Nodes: 1}, 0)), zeros{})
	n, err := io.Copy(io.Discard, newGuard(&pipe{Reader: endless}, &tr))
	if !errors.Is(err, errRefused) || n > MaxState+1024 {
		t.Errorf("an endless push: %d bytes, %v", n, err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// A deadline resets the stream even if streams have no deadlines.
func TestGuardDeadline(t *testing.T) {
	r, w := net.Pipe()
	defer func() { _ = w.Close() }()
	var tr traffic
	s := &blocking{far: r}
	g := newGuard(s, &tr)
	if err := g.SetDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Read(make([]byte, 1)); err == nil {
		t.Fatal("read from a silent stream")
	}
}

type blocking struct {
	network.Stream
	far net.Conn
}

func (b *blocking) Read(p []byte) (int, error) { return b.far.Read(p) }
func (b *blocking) Reset() error               { return b.far.Close() }

func TestVetPacket(t *testing.T) {
	crc := func(b ...byte) []byte { return append([]byte{kindCRC, 0, 0, 0, 0}, b...) }
	for name, b := range map[string][]byte{
		"ping": {kindPing}, "with a checksum": crc(kindAlive, 1),
		"two":  {kindCompound, 2, 0, 1, 0, 2, kindAck, kindDead, 9},
		"none": {kindCompound, 0},
	} {
		if err := vetPacket(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, b := range map[string][]byte{
		"empty": {}, "user": {8}, "compressed": {9, 1}, "encrypted": {10}, "push": {kindPushPull},
		"labelled":                     {244, 1, 65},
		"compressed behind a checksum": crc(9, 1),
		"compressed in a compound":     {kindCompound, 2, 0, 1, 0, 1, kindAck, 9},
		"nested":                       {kindCompound, 1, 0, 2, kindCompound, 0},
		"a checksum in a checksum":     crc(kindCRC, 0, 0, 0, 0, kindPing),
		"truncated":                    {kindCompound}, "truncated lengths": {kindCompound, 2, 0, 1},
		"truncated part": {kindCompound, 1, 0, 9, kindAck},
		"an empty part":  {kindCompound, 1, 0, 0},
	} {
		if err := vetPacket(b); !errors.Is(err, errRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzVetPacket(f *testing.F) {
	f.Add([]byte{kindCompound, 2, 0, 1, 0, 2, kindAck, kindDead, 9})
	f.Add([]byte{kindCRC, 0, 0, 0, 0, kindPing})
	f.Fuzz(func(t *testing.T, b []byte) {
		if vetPacket(b) == nil && len(b) > 0 && (b[0] == 8 || b[0] == 9 || b[0] == 10) {
			t.Fatalf("passed kind %d", b[0])
		}
	})
}

func FuzzGuard(f *testing.F) {
	f.Add(push(f, pushHeader{Nodes: 3, Join: true}, 40))
	f.Add([]byte{kindPing, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var tr traffic
		got, err := io.ReadAll(newGuard(&pipe{Reader: bytes.NewReader(b)}, &tr))
		if err == nil && !bytes.Equal(got, b) {
			t.Fatalf("read %x of %x", got, b)
		}
	})
}
