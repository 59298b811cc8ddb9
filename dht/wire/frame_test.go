package wire

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition"
)

func forward(n int) *Request {
	f := &Forward{}
	for range n {
		f.Links = append(f.Links, &Link{Key: "web:https://example.org/a/page", Referrer: "web:https://example.org/",
			Depth: 1})
	}
	return &Request{Version: partition.WireVersion, Body: &Request_Forward{Forward: f}}
}

func frameOf(t testing.TB, m proto.Message) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := writeMessage(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFrameRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := forward(0)
		for range rapid.IntRange(0, 40).Draw(t, "links") {
			want.GetForward().Links = append(want.GetForward().Links, &Link{
				Key:   "web:https://" + rapid.StringMatching(`[a-z]{1,20}`).Draw(t, "host") + "/",
				Depth: rapid.Uint32().Draw(t, "depth"), Seed: rapid.Bool().Draw(t, "seed")})
		}
		var b bytes.Buffer
		wrote, err := WriteRequest(&b, want)
		if err != nil || wrote != b.Len() {
			t.Fatalf("wrote %d of %d: %v", wrote, b.Len(), err)
		}
		b.WriteString("next")
		// One byte at a time: the result must not depend on how the bytes arrive.
		got, read, err := ReadRequest(iotest.OneByteReader(&b))
		if err != nil || read != wrote {
			t.Fatalf("read %d of %d: %v", read, wrote, err)
		}
		if !proto.Equal(want, got) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if b.String() != "next" {
			t.Fatalf("read beyond the frame: %q left", b.String())
		}
	})
}

func TestCompressionOnlyWhenItHelps(t *testing.T) {
	short := frameOf(t, forward(1))
	if short[2] != 0 {
		t.Error("a short body was compressed")
	}
	long := frameOf(t, forward(1000))
	if flags := long[bytes.IndexByte(long, FrameVersion)+1]; len(long) > 4000 || flags == 0 {
		t.Errorf("1000 equal links take %d bytes", len(long))
	}
	noisy := make([]byte, 4000)
	x := uint32(1)
	for i := range noisy {
		x = x*1664525 + 1013904223
		noisy[i] = byte(x >> 24)
	}
	f, err := appendFrame(nil, noisy)
	if err != nil || len(f) != len(noisy)+4 {
		t.Errorf("noise takes %d bytes: %v", len(f), err)
	}
}

func TestReadErrors(t *testing.T) {
	good := frameOf(t, forward(3))
	if _, _, err := ReadRequest(strings.NewReader("")); err != io.EOF {
		t.Errorf("nothing at all: %v", err)
	}
	for n := 1; n < len(good); n++ {
		if _, _, err := ReadRequest(bytes.NewReader(good[:n])); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut after %d of %d bytes: %v", n, len(good), err)
		}
	}
	for name, c := range map[string]struct {
		frame []byte
		want  error
	}{
		"length 0":             {[]byte{0}, ErrFrame},
		"length 1":             {[]byte{1, 1}, ErrFrame},
		"length 0 in two":      {[]byte{0x80, 0}, ErrFrame},
		"length in five":       {[]byte{0x80, 0x80, 0x80, 0x80, 1}, ErrFrame},
		"length over":          {[]byte{0x83, 0x80, 0x80, 2}, ErrTooLarge},
		"frame version":        {[]byte{2, 2, 0}, ErrVersion},
		"flags":                {[]byte{2, 1, 2}, ErrFrame},
		"both flags":           {[]byte{2, 1, 3}, ErrFrame},
		"no zstd":              {[]byte{3, 1, 1, 7}, ErrFrame},
		"truncated field":      {[]byte{3, 1, 0, 0x0a}, ErrMalformed},
		"message of version 0": {[]byte{2, 1, 0}, ErrVersion},
		"no body":              {[]byte{4, 1, 0, 8, partition.WireVersion}, ErrNoBody},
	} {
		if _, _, err := ReadRequest(bytes.NewReader(c.frame)); !errors.Is(err, c.want) {
			t.Errorf("%s: request: %v, want %v", name, err, c.want)
		}
		if _, _, err := ReadResponse(bytes.NewReader(c.frame)); !errors.Is(err, c.want) {
			t.Errorf("%s: response: %v, want %v", name, err, c.want)
		}
	}
}

// A small frame that decompresses to gigabytes is refused without decompressing it all.
func TestZstdBomb(t *testing.T) {
	z, err := zcodecs()
	if err != nil {
		t.Fatal(err)
	}
	bomb := z.enc.EncodeAll(make([]byte, 64<<20), nil)
	frame := append([]byte{}, byte(len(bomb)+2)|0x80, byte((len(bomb)+2)>>7), FrameVersion, flagZstd)
	if (len(bomb)+2)>>14 != 0 {
		t.Fatalf("the bomb has %d bytes, the test thought fewer", len(bomb))
	}
	frame = append(frame, bomb...)
	allocs := testing.AllocsPerRun(1, func() {
		if _, _, err := ReadRequest(bytes.NewReader(frame)); !errors.Is(err, ErrFrame) {
			t.Errorf("the bomb: %v", err)
		}
	})
	if allocs > 1000 {
		t.Errorf("%v allocations", allocs)
	}
}

// A claimed length without its bytes costs no memory.
func TestClaimedLengthIsNotAllocated(t *testing.T) {
	claim := []byte{0x82, 0x80, 0x80, 2, 1, 0} // MaxFrame+2
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const times = 50
	for range times {
		if _, _, err := ReadRequest(bytes.NewReader(claim)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	bytesPer := (after.TotalAlloc - before.TotalAlloc) / times
	if bytesPer > 64<<10 {
		t.Errorf("%d bytes for a claim of %d", bytesPer, MaxFrame)
	}
}

func TestWriteRefusesWhatReadWould(t *testing.T) {
	for name, m := range map[string]*Request{
		"links":   forward(MaxLinks + 1),
		"nothing": {Version: partition.WireVersion},
		"version": {Version: 99, Body: &Request_Status{Status: &Status{}}},
		"view":    {Version: partition.WireVersion, View: []byte{1}, Body: &Request_Status{Status: &Status{}}},
	} {
		var b bytes.Buffer
		if _, err := WriteRequest(&b, m); err == nil || b.Len() > 0 {
			t.Errorf("%s: %v, %d bytes written", name, err, b.Len())
		}
	}
	huge := &Response{Version: partition.WireVersion,
		Body: &Response_Records{Records: &RecordsAnswer{Records: [][]byte{make([]byte, MaxFrame)}}}}
	var b bytes.Buffer
	if _, err := WriteResponse(&b, huge); !errors.Is(err, ErrTooLarge) || b.Len() > 0 {
		t.Errorf("over the frame: %v, %d bytes written", err, b.Len())
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add(frameOf(f, forward(2)))
	f.Add(frameOf(f, forward(200)))
	f.Add(frameOf(f, &Request{Version: partition.WireVersion,
		Body: &Request_Turns{&Turns{Asks: []*TurnAsk{{Address: "192.0.2.1", GapMs: 1000, Want: true, Turn: 7, Back: 6,
			QuietMs: 900}}}}}))
	f.Add([]byte{2, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, n, err := ReadRequest(bytes.NewReader(b))
		if n > len(b) {
			t.Fatalf("read %d of %d", n, len(b))
		}
		if err != nil {
			return
		}
		var out bytes.Buffer
		if _, err := WriteRequest(&out, m); err != nil {
			t.Fatalf("read, but not writable: %v", err)
		}
		again, _, err := ReadRequest(&out)
		if err != nil || !proto.Equal(m, again) {
			t.Fatalf("%v became %v: %v", m, again, err)
		}
	})
}

func FuzzReadResponse(f *testing.F) {
	f.Add(frameOf(f, &Response{Version: partition.WireVersion,
		Body: &Response_Forward{Forward: &ForwardAck{Answers: []ForwardAck_Answer{1, 2, 3},
			Reasons: []string{"", "", "no"}}}}))
	f.Add(frameOf(f, &Response{Version: partition.WireVersion,
		Body: &Response_Query{Query: &QueryAnswer{Hits: []*Hit{{Key: "web:http://a/", Score: 1}},
			Missing: []uint64{1 << 62}}}}))
	f.Add(frameOf(f, &Response{Version: partition.WireVersion, Refusal: &Refusal{Code: 1}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, _, err := ReadResponse(bytes.NewReader(b))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if _, err := WriteResponse(&out, m); err != nil {
			t.Fatalf("read, but not writable: %v", err)
		}
		again, _, err := ReadResponse(&out)
		if err != nil || !proto.Equal(m, again) {
			t.Fatalf("%v became %v: %v", m, again, err)
		}
	})
}

func BenchmarkForward100(b *testing.B) {
	m := forward(100)
	b.ReportAllocs()
	for range b.N {
		var buf bytes.Buffer
		if _, err := WriteRequest(&buf, m); err != nil {
			b.Fatal(err)
		}
		if _, _, err := ReadRequest(&buf); err != nil {
			b.Fatal(err)
		}
	}
}
