package wire

import (
	"errors"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/echo-node/echo-node/partition"
)

// Every repeated field of the schema must have its limit in fieldLimit, and
// every packed one must be of a kind that elements can count.
func TestEveryRepeatedFieldHasALimit(t *testing.T) {
	seen := 0
	var walk func(ms protoreflect.MessageDescriptors)
	walk = func(ms protoreflect.MessageDescriptors) {
		for i := range ms.Len() {
			fields := ms.Get(i).Fields()
			for j := range fields.Len() {
				fd := fields.Get(j)
				if fd.Cardinality() != protoreflect.Repeated {
					continue
				}
				seen++
				if fieldLimit(fd.FullName()) == 0 {
					t.Errorf("%s has no limit", fd.FullName())
				}
				if fd.IsPacked() && !packable(fd.Kind()) {
					t.Errorf("%s is packed and its elements are not counted", fd.FullName())
				}
			}
			walk(ms.Get(i).Messages())
		}
	}
	walk(File_wire_proto.Messages())
	walk(File_descriptor_proto.Messages())
	if seen < 10 {
		t.Errorf("only %d repeated fields found", seen)
	}
}

// The scan counts what Unmarshal would allocate, before it does.
func TestScanRefusesAmplification(t *testing.T) {
	empties := func(num protowire.Number, n int) []byte { // n empty messages, two or three bytes each
		var b []byte
		for range n {
			b = protowire.AppendTag(b, num, protowire.BytesType)
			b = protowire.AppendVarint(b, 0)
		}
		return b
	}
	inside := func(num protowire.Number, body []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), body)
	}
	request, response := (&Request{}).ProtoReflect().Descriptor(), (&Response{}).ProtoReflect().Descriptor()
	zeros := make([]byte, MaxSlices+1) // that many packed varints
	for name, c := range map[string]struct {
		b  []byte
		md protoreflect.MessageDescriptor
	}{
		"links":               {inside(10, empties(1, MaxLinks+1)), request},
		"hits":                {inside(11, empties(1, MaxHits+1)), response},
		"terms":               {inside(11, inside(10, empties(3, MaxTerms+1))), request},
		"packed slices":       {inside(11, inside(2, zeros)), request},
		"slices in two parts": {inside(11, append(inside(2, zeros[1:]), inside(2, zeros[:1])...)), request},
		"bodies over bodies":  {empties(10, MaxElements+1), request},
	} {
		if err := scan(c.b, c.md); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := scan(inside(11, inside(2, zeros[1:])), request); err != nil {
		t.Errorf("as many slices as allowed: %v", err)
	}
}

func TestValidateRequests(t *testing.T) {
	long := strings.Repeat("x", MaxKey+1)
	for name, b := range map[string]isRequest_Body{
		"key too long":       &Request_Forward{&Forward{Links: []*Link{{Key: long}}}},
		"no key":             &Request_Forward{&Forward{Links: []*Link{{}}}},
		"nil link":           &Request_Forward{&Forward{Links: []*Link{nil}}},
		"referrer too long":  &Request_Forward{&Forward{Links: []*Link{{Key: "k", Referrer: long}}}},
		"nil forward":        &Request_Forward{},
		"nil query":          &Request_Query{},
		"nil status":         &Request_Status{},
		"nil transfer":       &Request_Transfer{},
		"nil records":        &Request_Records{},
		"query too long":     &Request_Query{&Query{Q: strings.Repeat("x", MaxQuery+1)}},
		"query limit":        &Request_Query{&Query{Limit: MaxHits + 1}},
		"query slices":       &Request_Query{&Query{Slices: make([]uint64, MaxSlices+1)}},
		"filter too long":    &Request_Query{&Query{Site: strings.Repeat("x", MaxText+1)}},
		"average not finite": &Request_Query{&Query{Stats: &TermStats{AvgLen: math.NaN()}}},
		"average negative":   &Request_Query{&Query{Stats: &TermStats{AvgLen: -1}}},
		"opaque too long":    &Request_Query{&Query{Stats: &TermStats{Opaque: make([]byte, MaxOpaque+1)}}},
		"term too long":      &Request_Query{&Query{Stats: &TermStats{Df: map[string]uint64{strings.Repeat("x", MaxText+1): 1}}}},
		"whose key":          &Request_WhoOwns{&WhoOwns{}},
		"show key":           &Request_Show{&Show{Key: long}},
		"transfer cursor":    &Request_Transfer{&Transfer{After: make([]byte, MaxRowKey+1)}},
		"transfer slices":    &Request_Transfer{&Transfer{Slices: make([]uint64, MaxSlices+1)}},
		"export limit":       &Request_Records{&Records{Limit: MaxRecords + 1}},
		"export cursor":      &Request_Records{&Records{After: long}},
		"export slices":      &Request_Records{&Records{Slices: make([]uint64, MaxSlices+1)}},
	} {
		m := &Request{Version: partition.WireVersion, Body: b}
		if err := m.Validate(); err == nil {
			t.Errorf("%s passed", name)
		}
	}
	for name, b := range map[string]isRequest_Body{
		"forward":  &Request_Forward{&Forward{Links: []*Link{{Key: strings.Repeat("x", MaxKey)}}}},
		"query":    &Request_Query{&Query{Q: "q", Limit: MaxHits, Stats: &TermStats{AvgLen: 3}}},
		"who owns": &Request_WhoOwns{&WhoOwns{Key: "k"}},
		"status":   &Request_Status{&Status{}},
		"transfer": &Request_Transfer{&Transfer{Slice: 1}},
		"records":  &Request_Records{&Records{}},
	} {
		m := &Request{Version: partition.WireVersion, View: make([]byte, 8), Body: b}
		if err := m.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (*Request)(nil).Validate(); !errors.Is(err, ErrNoBody) {
		t.Errorf("nil: %v", err)
	}
}

func TestValidateResponses(t *testing.T) {
	longText, longID := strings.Repeat("x", MaxText+1), strings.Repeat("x", MaxPeerID+1)
	for name, m := range map[string]*Response{
		"answer unknown":    {Body: &Response_Forward{&ForwardAck{Answers: []ForwardAck_Answer{77}}}},
		"answer 0":          {Body: &Response_Forward{&ForwardAck{Answers: []ForwardAck_Answer{0}}}},
		"more reasons":      {Body: &Response_Forward{&ForwardAck{Reasons: []string{"x"}}}},
		"reason too long":   {Body: &Response_Forward{&ForwardAck{Answers: []ForwardAck_Answer{3}, Reasons: []string{longText}}}},
		"answers":           {Body: &Response_Forward{&ForwardAck{Answers: make([]ForwardAck_Answer, MaxLinks+1)}}},
		"owner too long":    {Body: &Response_Forward{&ForwardAck{Owner: longID}}},
		"nil ack":           {Body: &Response_Forward{}},
		"refusal and body":  {Refusal: &Refusal{Code: 1}, Body: &Response_Status{&StatusAnswer{}}},
		"refusal unknown":   {Refusal: &Refusal{Code: 9}},
		"refusal 0":         {Refusal: &Refusal{}},
		"refusal too long":  {Refusal: &Refusal{Code: 1, Reason: longText}},
		"score":             {Body: &Response_Query{&QueryAnswer{Hits: []*Hit{{Key: "k", Score: math.Inf(1)}}}}},
		"hit without key":   {Body: &Response_Query{&QueryAnswer{Hits: []*Hit{{}}}}},
		"hit text":          {Body: &Response_Query{&QueryAnswer{Hits: []*Hit{{Key: "k", Snippet: longText}}}}},
		"hits":              {Body: &Response_Query{&QueryAnswer{Hits: make([]*Hit, MaxHits+1)}}},
		"missing":           {Body: &Response_Query{&QueryAnswer{Missing: make([]uint64, MaxSlices+1)}}},
		"keepers":           {Body: &Response_WhoOwns{&WhoOwnsAnswer{Keepers: make([]string, MaxPeers+1)}}},
		"keeper too long":   {Body: &Response_WhoOwns{&WhoOwnsAnswer{Keepers: []string{longID}}}},
		"addresses":         {Body: &Response_WhoOwns{&WhoOwnsAnswer{Addrs: make([]string, MaxPeers+1)}}},
		"address too long":  {Body: &Response_WhoOwns{&WhoOwnsAnswer{Addrs: []string{longID}}}},
		"row key":           {Body: &Response_Transfer{&TransferAnswer{Rows: []*Row{{Key: make([]byte, MaxRowKey+1)}}}}},
		"rows":              {Body: &Response_Transfer{&TransferAnswer{Rows: make([]*Row, MaxRows+1)}}},
		"holds":             {Body: &Response_Transfer{&TransferAnswer{Holds: make([]uint64, MaxSlices+1)}}},
		"empty":             {Body: &Response_Transfer{&TransferAnswer{Empty: make([]uint64, MaxSlices+1)}}},
		"next":              {Body: &Response_Transfer{&TransferAnswer{Next: make([]byte, MaxRowKey+1)}}},
		"records":           {Body: &Response_Records{&RecordsAnswer{Records: make([][]byte, MaxRecords+1)}}},
		"export cursor":     {Body: &Response_Records{&RecordsAnswer{Next: strings.Repeat("x", MaxKey+1)}}},
		"nothing":           {},
		"nil show":          {Body: &Response_Show{}},
		"nil status":        {Body: &Response_Status{}},
		"nil query answer":  {Body: &Response_Query{}},
		"nil owners":        {Body: &Response_WhoOwns{}},
		"nil transfer":      {Body: &Response_Transfer{}},
		"nil records":       {Body: &Response_Records{}},
		"nil hit":           {Body: &Response_Query{&QueryAnswer{Hits: []*Hit{nil}}}},
		"hit peer too long": {Body: &Response_Query{&QueryAnswer{Hits: []*Hit{{Key: "k", Peer: longID}}}}},
	} {
		m.Version = partition.WireVersion
		if err := m.Validate(); err == nil {
			t.Errorf("%s passed", name)
		}
	}
	ok := &Response{Version: partition.WireVersion, Body: &Response_Show{&ShowAnswer{Known: true}}}
	if err := ok.Validate(); err != nil {
		t.Error(err)
	}
	if b, err := proto.Marshal(ok); err != nil || scan(b, ok.ProtoReflect().Descriptor()) != nil {
		t.Error("a good answer does not pass the scan")
	}
}
