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

// Every repeated field of the schema must have its limit in fieldLimit, and every packed one
// must be of a kind that elements can count.
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
	walk(File_admission_proto.Messages())
	if seen < 10 {
		t.Errorf("only %d repeated fields found", seen)
	}
}

// The scan counts what Unmarshal would allocate, before Unmarshal runs.
func TestScanRefusesAmplification(t *testing.T) {
	// n empty messages, two or three bytes each
	empties := func(num protowire.Number, n int) []byte {
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
		"nil records":        &Request_Records{},
		"query too long":     &Request_Query{&Query{Q: strings.Repeat("x", MaxQuery+1)}},
		"query limit":        &Request_Query{&Query{Limit: MaxHits + 1}},
		"query slices":       &Request_Query{&Query{Slices: make([]uint64, MaxSlices+1)}},
		"filter too long":    &Request_Query{&Query{Site: strings.Repeat("x", MaxText+1)}},
		"facet too long":     &Request_Query{&Query{Facets: &Facets{Scope: strings.Repeat("x", MaxText+1)}}},
		"facet off earth":    &Request_Query{&Query{Facets: &Facets{Lat: 91}}},
		"facet radius":       &Request_Query{&Query{Facets: &Facets{RadiusKm: math.Inf(1)}}},
		"average not finite": &Request_Query{&Query{Stats: &TermStats{AvgLen: math.NaN()}}},
		"average negative":   &Request_Query{&Query{Stats: &TermStats{AvgLen: -1}}},
		"opaque too long":    &Request_Query{&Query{Stats: &TermStats{Opaque: make([]byte, MaxOpaque+1)}}},
		"term too long": &Request_Query{&Query{Stats: &TermStats{Df: map[string]uint64{strings.Repeat("x",
			MaxText+1): 1}}}},
		"whose key":       &Request_WhoOwns{&WhoOwns{}},
		"nil who owns":    &Request_WhoOwns{},
		"whose slice":     &Request_WhoOwns{&WhoOwns{Slice: 1 << 63}},
		"whose of both":   &Request_WhoOwns{&WhoOwns{Key: "k", Slice: 1 << 60}},
		"query zone":      &Request_Query{&Query{Zone: 3 << 62}},
		"zone and slices": &Request_Query{&Query{Zone: uint64(partition.HashZone), Slices: []uint64{1}}},
		"show key":        &Request_Show{&Show{Key: long}},
		"export limit":    &Request_Records{&Records{Limit: MaxRecords + 1}},
		"export cursor":   &Request_Records{&Records{After: long}},
		"export part":     &Request_Records{&Records{AfterPart: make([]byte, MaxPart+1)}},
		"export slices":   &Request_Records{&Records{Slices: make([]uint64, MaxSlices+1)}},
		"nil lease":       &Request_Lease{}, "nil ballots": &Request_Ballots{}, "nil configs": &Request_Configs{},
		"nil ship":    &Request_Ship{},
		"nil compare": &Request_Compare{}, "nil unite": &Request_Unite{},
		"lease configs": &Request_Lease{&Lease{Configs: make([]*Config, MaxConfigs+1)}},
		"nil config":    &Request_Lease{&Lease{Configs: []*Config{nil}}},
		"too many replicas": &Request_Configs{&Configs{Decided: []*Config{{Keepers: make([]string,
			MaxConfigKeepers+1)}}}},
		"too many starts": &Request_Configs{&Configs{Decided: []*Config{{Starts: make([]*Start,
			MaxConfigStarts+1)}}}},
		"long fork": &Request_Configs{&Configs{Decided: []*Config{{Fork: strings.Repeat("x",
			MaxPeerID+1)}}}},
		"proposal without base": &Request_Ballots{&Ballots{Proposals: []*Proposal{{}}}},
		"successor elsewhere": &Request_Ballots{&Ballots{Proposals: []*Proposal{{Base: &Config{Slice: 1},
			Next: &Config{Slice: 2}}}}},
		"pieces":     &Request_Ship{&Ship{Pieces: make([]*Piece, MaxPieces+1)}},
		"piece kind": &Request_Ship{&Ship{Pieces: []*Piece{{}}}},
		"rows of pieces": &Request_Ship{&Ship{Pieces: []*Piece{{Kind: 2, Rows: make([]*Row, MaxRows/2+1)},
			{Kind: 2, Rows: make([]*Row, MaxRows/2+1)}}}},
		"compare cursor":    &Request_Compare{&Compare{After: make([]byte, MaxRowKey+1)}},
		"compare bucket":    &Request_Compare{&Compare{Bucket: 256}},
		"unite rows":        &Request_Unite{&Unite{Rows: make([]*Row, MaxRows+1)}},
		"nil override":      &Request_Overrule{},
		"no override":       &Request_Overrule{&Overrule{}},
		"override too long": &Request_Overrule{&Overrule{Override: make([]byte, maxOverride+1)}},
		"nil copies":        &Request_Copies{},
		"copies of nothing": &Request_Copies{&Copies{Slices: []uint64{1}}},
		"copies of both":    &Request_Copies{&Copies{Key: "k", Prints: [][]byte{{1}}}},
		"copies of many":    &Request_Copies{&Copies{Prints: make([][]byte, MaxPrints+1)}},
		"a print too long":  &Request_Copies{&Copies{Prints: [][]byte{make([]byte, MaxWords+1)}}},
		"copies in slices":  &Request_Copies{&Copies{Key: "k", Slices: make([]uint64, MaxSlices+1)}},
		"copies in both": &Request_Copies{&Copies{Key: "k", Zone: uint64(partition.HashZone),
			Slices: []uint64{1}}},
		"copies in no zone":    &Request_Copies{&Copies{Key: "k", Zone: 3 << 62}},
		"copies of a long key": &Request_Copies{&Copies{Key: long}},
		"nil turns":            &Request_Turns{},
		"nil turn":             &Request_Turns{&Turns{Asks: []*TurnAsk{nil}}},
		"turns":                &Request_Turns{&Turns{Asks: make([]*TurnAsk, MaxTurns+1)}},
		"turn of no address":   &Request_Turns{&Turns{Asks: []*TurnAsk{{Want: true, Turn: 1}}}},
		"address of a turn": &Request_Turns{&Turns{Asks: []*TurnAsk{{Address: strings.Repeat("1", MaxAddress+1),
			Want: true, Turn: 1}}}},
		"turn without a number": &Request_Turns{&Turns{Asks: []*TurnAsk{{Address: "192.0.2.1", Want: true}}}},
		"nothing asked":         &Request_Turns{&Turns{Asks: []*TurnAsk{{Address: "192.0.2.1", Turn: 1}}}},
		"gap of a turn": &Request_Turns{&Turns{Asks: []*TurnAsk{{Address: "192.0.2.1", Want: true, Turn: 1,
			GapMs: MaxTurnMs + 1}}}},
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
		"slice":    &Request_WhoOwns{&WhoOwns{Slice: 1 << 60}},
		"zone":     &Request_Query{&Query{Zone: uint64(partition.HashZone)}},
		"status":   &Request_Status{&Status{}},
		"copies":   &Request_Copies{&Copies{Prints: [][]byte{make([]byte, MaxWords)}, Slices: []uint64{1}}},
		"named":    &Request_Copies{&Copies{Key: "k", Post: "p", Zone: uint64(partition.HashZone)}},
		"ship":     &Request_Ship{&Ship{Pieces: []*Piece{{Kind: 1}}}},
		"records":  &Request_Records{&Records{}},
		"turns": &Request_Turns{&Turns{Asks: []*TurnAsk{{Address: "192.0.2.1", Want: true, Turn: 1},
			{Address: "::1", Back: 1, QuietMs: 1 << 60}}}},
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
		"answer unknown": {Body: &Response_Forward{&ForwardAck{Answers: []ForwardAck_Answer{77}}}},
		"answer 0":       {Body: &Response_Forward{&ForwardAck{Answers: []ForwardAck_Answer{0}}}},
		"more reasons":   {Body: &Response_Forward{&ForwardAck{Reasons: []string{"x"}}}},
		"reason too long": {Body: &Response_Forward{&ForwardAck{Answers: []ForwardAck_Answer{3},
			Reasons: []string{longText}}}},
		"answers":          {Body: &Response_Forward{&ForwardAck{Answers: make([]ForwardAck_Answer, MaxLinks+1)}}},
		"owner too long":   {Body: &Response_Forward{&ForwardAck{Owner: longID}}},
		"nil ack":          {Body: &Response_Forward{}},
		"refusal and body": {Refusal: &Refusal{Code: 1}, Body: &Response_Status{&StatusAnswer{}}},
		"refusal unknown":  {Refusal: &Refusal{Code: 9}},
		"refusal 0":        {Refusal: &Refusal{}},
		"refusal too long": {Refusal: &Refusal{Code: 1, Reason: longText}},
		"score":            {Body: &Response_Query{&QueryAnswer{Hits: []*Hit{{Key: "k", Score: math.Inf(1)}}}}},
		"hit without key":  {Body: &Response_Query{&QueryAnswer{Hits: []*Hit{{}}}}},
		"hit print": {Body: &Response_Query{&QueryAnswer{Hits: []*Hit{{Key: "k",
			Print: make([]byte, MaxPrint+1)}}}}},
		"hit text":         {Body: &Response_Query{&QueryAnswer{Hits: []*Hit{{Key: "k", Snippet: longText}}}}},
		"hits":             {Body: &Response_Query{&QueryAnswer{Hits: make([]*Hit, MaxHits+1)}}},
		"missing":          {Body: &Response_Query{&QueryAnswer{Missing: make([]uint64, MaxSlices+1)}}},
		"keepers":          {Body: &Response_WhoOwns{&WhoOwnsAnswer{Keepers: make([]string, MaxPeers+1)}}},
		"replica too long": {Body: &Response_WhoOwns{&WhoOwnsAnswer{Keepers: []string{longID}}}},
		"addresses":        {Body: &Response_WhoOwns{&WhoOwnsAnswer{Addrs: make([]string, MaxPeers+1)}}},
		"address too long": {Body: &Response_WhoOwns{&WhoOwnsAnswer{Addrs: []string{longID}}}},
		"answerer's zone":  {Body: &Response_WhoOwns{&WhoOwnsAnswer{Zone: 3 << 62}}},
		"descriptor long":  {Body: &Response_WhoOwns{&WhoOwnsAnswer{Sealed: make([]byte, MaxDescriptor+1)}}},
		"records":          {Body: &Response_Records{&RecordsAnswer{Records: make([][]byte, MaxRecords+1)}}},
		"export cursor":    {Body: &Response_Records{&RecordsAnswer{Next: strings.Repeat("x", MaxKey+1)}}},
		"whole slices":     {Body: &Response_Records{&RecordsAnswer{Whole: make([]uint64, MaxSlices+1)}}},
		"nothing":          {},
		"nil overruled":    {Body: &Response_Overrule{}},
		"nil copies":       {Body: &Response_Copies{}},
		"copies":           {Body: &Response_Copies{&CopiesAnswer{Found: make([]*Copy, MaxCopies+1)}}},
		"nil copy":         {Body: &Response_Copies{&CopiesAnswer{Found: []*Copy{nil}}}},
		"copy of nothing":  {Body: &Response_Copies{&CopiesAnswer{Found: []*Copy{{}}}}},
		"copy's print": {Body: &Response_Copies{&CopiesAnswer{Found: []*Copy{{Key: "k",
			Print: make([]byte, MaxWords+1)}}}}},
		"copy's title":     {Body: &Response_Copies{&CopiesAnswer{Found: []*Copy{{Key: "k", Title: longText}}}}},
		"copy's peer":      {Body: &Response_Copies{&CopiesAnswer{Found: []*Copy{{Key: "k", Peer: longID}}}}},
		"copies missing":   {Body: &Response_Copies{&CopiesAnswer{Missing: make([]uint64, MaxSlices+1)}}},
		"nil show":         {Body: &Response_Show{}},
		"nil status":       {Body: &Response_Status{}},
		"nil query answer": {Body: &Response_Query{}},
		"nil owners":       {Body: &Response_WhoOwns{}},
		"row key":          {Body: &Response_Compare{&CompareAnswer{Rows: []*Row{{Key: make([]byte, MaxRowKey+1)}}}}},
		"digests":          {Body: &Response_Compare{&CompareAnswer{Digests: make([]byte, MaxDigests+1)}}},
		"stances":          {Body: &Response_Ship{&ShipAnswer{Stances: make([]*Stance, MaxPieces+1)}}},
		"promises":         {Body: &Response_Ballots{&BallotsAnswer{Promises: make([]*Promise, MaxConfigs+1)}}},
		"refused slices":   {Body: &Response_Lease{&LeaseAnswer{Refused: make([]uint64, MaxSlices+1)}}},
		"rows":             {Body: &Response_Compare{&CompareAnswer{Rows: make([]*Row, MaxRows+1)}}},
		"next":             {Body: &Response_Compare{&CompareAnswer{Next: make([]byte, MaxRowKey+1)}}},
		"nil lease":        {Body: &Response_Lease{}}, "nil ship": {Body: &Response_Ship{}},
		"nil unite": {Body: &Response_Unite{}}, "nil configs": {Body: &Response_Configs{}},
		"nil records":     {Body: &Response_Records{}},
		"nil turns":       {Body: &Response_Turns{}},
		"turns":           {Body: &Response_Turns{&TurnsAnswer{Answers: make([]*TurnAnswer, MaxTurns+1)}}},
		"nil turn":        {Body: &Response_Turns{&TurnsAnswer{Answers: []*TurnAnswer{nil}}}},
		"state of a turn": {Body: &Response_Turns{&TurnsAnswer{Answers: []*TurnAnswer{{State: 99}}}}},
		"term of a turn": {Body: &Response_Turns{&TurnsAnswer{Answers: []*TurnAnswer{{State: 1,
			TermMs: MaxTurnMs + 1}}}}},
		"owner of a turn": {Body: &Response_Turns{&TurnsAnswer{Answers: []*TurnAnswer{{State: 3, Owner: longID}}}}},
		"reason of a turn": {Body: &Response_Turns{&TurnsAnswer{Answers: []*TurnAnswer{{State: 4,
			Reason: longText}}}}},
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
