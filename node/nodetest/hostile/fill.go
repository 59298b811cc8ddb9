package hostile

import (
	"math"
	"math/rand/v2"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// filler fills messages of any type, using their descriptors. It uses values that a peer knows
// and values that no correct peer sends.
type filler struct {
	r  *rand.Rand
	sc *Scene
}

// Random returns a request of that kind with random fields.
func (sc *Scene) Random(r *rand.Rand, kind Kind) *wire.Request {
	req := &wire.Request{Version: partition.WireVersion, Id: r.Uint64()}
	body(req.ProtoReflect(), kind, func(m protoreflect.Message) { filler{r, sc}.fill(m, 0) })
	return req
}

// RandomAnswer returns a response of that kind with random fields.
func (sc *Scene) RandomAnswer(r *rand.Rand, kind Kind, id uint64) *wire.Response {
	resp := &wire.Response{Version: partition.WireVersion, Id: id}
	body(resp.ProtoReflect(), kind, func(m protoreflect.Message) { filler{r, sc}.fill(m, 0) })
	return resp
}

// body sets the field kind of m's body and calls fill to fill it.
func body(m protoreflect.Message, kind Kind, fill func(protoreflect.Message)) {
	f := m.Descriptor().Fields().ByName(kind)
	inner := m.NewField(f)
	fill(inner.Message())
	m.Set(f, inner)
}

const maxDepth = 4

// fill sets the fields of m at random, about one in five not at all. Messages nest at most
// maxDepth deep.
func (g filler) fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if g.r.IntN(5) == 0 {
			continue // absent
		}
		switch {
		case f.IsMap():
			mm := m.Mutable(f).Map()
			for range g.r.IntN(4) {
				mm.Set(g.scalar(f.MapKey()).MapKey(), g.scalar(f.MapValue()))
			}
		case f.IsList():
			l := m.Mutable(f).List()
			for range g.length() {
				if f.Message() == nil {
					l.Append(g.scalar(f))
				} else if depth < maxDepth {
					v := l.NewElement()
					g.fill(v.Message(), depth+1)
					l.Append(v)
				}
			}
		case f.Message() != nil:
			if depth < maxDepth {
				g.fill(m.Mutable(f).Message(), depth+1)
			}
		default:
			m.Set(f, g.scalar(f))
		}
	}
}

func (g filler) length() int {
	if g.r.IntN(40) == 0 {
		return 40 + g.r.IntN(60)
	}
	return g.r.IntN(5)
}

func (g filler) scalar(f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(g.r.IntN(2) == 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(g.r.IntN(8)))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(g.number(f)))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(g.number(f))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(g.number(f)))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(int64(g.number(f)))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(pick(g.r, 0, 1, -1, 1e300, math.Inf(1), math.NaN(), g.r.NormFloat64()))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(g.r.NormFloat64()))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(g.bytes(f))
	}
	return protoreflect.ValueOfString(utf8(g.text(f)))
}

// number returns a number that fits the field's name, or one at a limit.
func (g filler) number(f protoreflect.FieldDescriptor) uint64 {
	name := string(f.Name())
	switch {
	case strings.Contains(name, "slice") && g.r.IntN(8) > 0:
		return g.slice()
	case (name == "from" || name == "to" || name == "head" || name == "pos" || name == "after") && g.r.IntN(2) == 0:
		return uint64(g.r.IntN(4))
	case (name == "gen" || name == "epoch" || name == "ballot") && g.r.IntN(2) == 0:
		return uint64(g.r.IntN(6))
	}
	return pick(g.r, 0, 1, 2, 3, 255, 256, 1<<16, 1<<31, 1<<32, 1<<61, 1<<62, 1<<62+1, math.MaxInt64, math.MaxUint64,
		g.r.Uint64())
}

// slice returns a slice that the sender attacks. A ReplicaSet at random about a slice that it keeps may
// be one that the others believe (Weaknesses).
func (g filler) slice() uint64 {
	s := pick(g.r, g.sc.All...)
	if g.sc.Spare[s] {
		return math.MaxUint64 // no slice
	}
	return uint64(s)
}

func (g filler) text(f protoreflect.FieldDescriptor) string {
	name := string(f.Name())
	switch {
	case g.r.IntN(10) == 0:
		return pick(g.r, "", "\x00", strings.Repeat("x", 5000), "\x1b]0;owned\x07", "../../etc/passwd", "\u202eevil",
			"ip:127.0.0.1")
	case name == "owner" || name == "keepers" || name == "fork" || name == "by" || name == "peer" ||
		strings.HasSuffix(name, "_by"):
		return pick(g.r, append(g.sc.Peers, g.sc.Me, "", "nobody")...)
	case name == "address":
		return pick(g.r, "127.77.0.1", "127.0.0.1", "10.0.0.1", "::1", "ip:127.77.0.1", "x")
	}
	return string(pick(g.r, append(g.sc.Keys, "web:http://127.77.0.9/", "web:http://127.0.0.1/", "mastodon:a@b.example",
		"ip:127.77.0.1")...))
}

func (g filler) bytes(f protoreflect.FieldDescriptor) []byte {
	rows := g.sc.Rows
	if len(rows) == 0 || g.r.IntN(4) == 0 {
		b := make([]byte, g.r.IntN(64))
		for i := range b {
			b[i] = byte(g.r.Uint32())
		}
		return b
	}
	row := pick(g.r, rows...)
	b := row.Value
	if f.Name() == "key" || f.Name() == "after" || f.Name() == "next" {
		b = row.Key
	}
	b = append([]byte(nil), b...)
	if len(b) > 0 && g.r.IntN(3) == 0 {
		b[g.r.IntN(len(b))] ^= byte(1 << g.r.IntN(8))
	}
	return b
}

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// HugeFrames returns the frames of Huge, which are expensive to make.
func (sc *Scene) HugeFrames(kind Kind) [][]byte {
	var out [][]byte
	for _, req := range sc.Huge(kind) {
		out = append(out, Frame(req))
	}
	return out
}

// Huge returns requests of that kind that exceed a limit: in each list of the body, and in the
// size of the frame.
func (sc *Scene) Huge(kind Kind) []*wire.Request {
	var out []*wire.Request
	fields := (&wire.Request{}).ProtoReflect().Descriptor().Fields().ByName(kind).Message().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !f.IsList() && f.Kind() != protoreflect.BytesKind && f.Kind() != protoreflect.StringKind {
			continue
		}
		req := &wire.Request{Version: partition.WireVersion}
		body(req.ProtoReflect(), kind, func(m protoreflect.Message) { huge(m, f) })
		out = append(out, req)
	}
	if len(out) == 0 { // nothing in it can be large: a frame with more than its message
		req := &wire.Request{Version: partition.WireVersion}
		body(req.ProtoReflect(), kind, func(m protoreflect.Message) {
			m.SetUnknown(append([]byte{0xfa, 0x3f, 0x80, 0x80, 0x80, 0x04}, make([]byte, 8<<20)...))
		})
		out = append(out, req)
	}
	return out
}

func huge(m protoreflect.Message, f protoreflect.FieldDescriptor) {
	const much, many = wire.MaxFrame + 1, 400_000
	long := make([]byte, much)
	for i := range long {
		long[i] = 'x'
	}
	switch {
	case !f.IsList() && f.Kind() == protoreflect.BytesKind:
		m.Set(f, protoreflect.ValueOfBytes(long))
	case !f.IsList():
		m.Set(f, protoreflect.ValueOfString(string(long)))
	default:
		l := m.Mutable(f).List()
		for range many {
			if f.Message() != nil {
				l.Append(l.NewElement())
				continue
			}
			switch f.Kind() {
			case protoreflect.StringKind:
				l.Append(protoreflect.ValueOfString("x"))
			case protoreflect.BytesKind:
				l.Append(protoreflect.ValueOfBytes([]byte("x")))
			default:
				l.Append(protoreflect.ValueOfUint64(1))
			}
		}
	}
}

// Clone copies a request.
func Clone(req *wire.Request) *wire.Request { return proto.Clone(req).(*wire.Request) }
