package hostile

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"google.golang.org/protobuf/proto"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// RPC returns the protocol of requests in the swarm of c.
func RPC(c partition.Charter) protocol.ID {
	d := c.Digest()
	return protocol.ID("/echo/" + d[:min(len(d), 16)] + "/rpc/1")
}

// Frame returns the frame of a message that need not be valid: no limit is applied.
func Frame(m proto.Message) []byte {
	body, err := proto.MarshalOptions{AllowPartial: true}.Marshal(m)
	if err != nil {
		// text that is not UTF-8: see utf8
		panic("hostile: a message does not marshal: " + err.Error())
	}
	return FrameOf(body)
}

// FrameOf returns the frame of any bytes.
func FrameOf(body []byte) []byte {
	out := binary.AppendUvarint(nil, uint64(len(body)+2))
	return append(append(out, wire.FrameVersion, 0), body...)
}

// Sender sends bytes to one peer as one identity.
type Sender struct {
	Host  host.Host
	To    peer.ID
	Proto protocol.ID
}

// Send writes one frame and reads the response. Without a response it returns nil and the
// reason.
func (s Sender) Send(ctx context.Context, frame []byte) (*wire.Response, error) {
	st, err := s.Host.NewStream(ctx, s.To, s.Proto)
	if err != nil {
		return nil, err
	}
	defer func() { _ = st.Reset() }()
	defer context.AfterFunc(ctx, func() { _ = st.Reset() })()
	// A peer that refuses before it has read all may end the stream; its response still counts.
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if _, err := io.Copy(st, bytes.NewReader(frame)); err == nil {
			_ = st.CloseWrite()
		}
	}()
	r, _, err := wire.ReadResponse(st)
	_ = st.Reset()
	<-sent
	return r, err
}

// Ask sends a request that may be invalid.
func (s Sender) Ask(ctx context.Context, req *wire.Request) (*wire.Response, error) {
	if req.Version == 0 {
		req.Version = partition.WireVersion
	}
	return s.Send(ctx, Frame(req))
}

// Hold opens up to n streams, writes the beginning of a frame on each and then nothing more. It
// returns how many streams the peer accepted; end closes them.
func (s Sender) Hold(ctx context.Context, n int, frame []byte) (held int, end func()) {
	var open []network.Stream
	for range n {
		st, err := s.Host.NewStream(ctx, s.To, s.Proto)
		if err != nil {
			break
		}
		if _, err := st.Write(frame[:1+len(frame)/2]); err != nil {
			_ = st.Reset()
			break
		}
		open = append(open, st)
	}
	return len(open), func() {
		for _, st := range open {
			_ = st.Reset()
		}
	}
}

// Cut sends the frame up to several positions, each on a new stream, and ends the stream there.
func (s Sender) Cut(ctx context.Context, frame []byte) error {
	for _, n := range []int{0, 1, 2, 3, len(frame) / 4, len(frame) / 2, len(frame) - 1} {
		n = min(n, len(frame))
		cctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		r, err := s.Send(cctx, frame[:n])
		cancel()
		if err == nil && r.GetRefusal() == nil {
			return fmt.Errorf("%d of %d bytes were answered: %v", n, len(frame), r)
		}
	}
	return nil
}

// utf8 makes text valid UTF-8. Otherwise the bad message could not be marshalled.
func utf8(s string) string { return strings.ToValidUTF8(s, "?") }
