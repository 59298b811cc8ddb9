package wire

import (
	"fmt"
	"math"

	"github.com/echo-node/echo-node/partition"
)

// Validate checks everything about m that does not need the receiver's state. A nil error means
// that m has exactly one body, that each text, list and number is within its limit, and that
// enumerations are known.
func (m *Request) Validate() error {
	if m == nil {
		return ErrNoBody
	}
	if m.Version != partition.WireVersion {
		return fmt.Errorf("message version %d, this peer speaks %d: %w", m.Version, partition.WireVersion, ErrVersion)
	}
	// The digest is only a hint, so a request without it is valid.
	if len(m.View) != 0 && len(m.View) != 8 {
		return fmt.Errorf("view digest of %d bytes: %w", len(m.View), ErrMalformed)
	}
	switch b := m.Body.(type) {
	case *Request_Forward:
		return b.Forward.validate()
	case *Request_Query:
		return b.Query.validate()
	case *Request_WhoOwns:
		return b.WhoOwns.validate()
	case *Request_Show:
		return checkKey("show key", b.Show.GetKey())
	case *Request_Status:
		return present(b.Status != nil)
	case *Request_Records:
		return b.Records.validate()
	case *Request_Lease:
		return b.Lease.validate()
	case *Request_Ballots:
		return b.Ballots.validate()
	case *Request_Configs:
		return b.Configs.validate()
	case *Request_Ship:
		return b.Ship.validate()
	case *Request_Compare:
		return b.Compare.validate()
	case *Request_Unite:
		return b.Unite.validate()
	case *Request_Turns:
		return b.Turns.validate()
	case *Request_Overrule:
		return b.Overrule.validate()
	case *Request_Copies:
		return b.Copies.validate()
	}
	return ErrNoBody
}

// Validate is Request.Validate for a Response: it must have a refusal or exactly one body.
func (m *Response) Validate() error {
	if m == nil {
		return ErrNoBody
	}
	if m.Version != partition.WireVersion {
		return fmt.Errorf("message version %d, this peer speaks %d: %w", m.Version, partition.WireVersion, ErrVersion)
	}
	// A refusal stands in place of the body.
	if m.Refusal != nil {
		if m.Body != nil {
			return fmt.Errorf("a refusal with a body: %w", ErrMalformed)
		}
		return m.Refusal.validate()
	}
	switch b := m.Body.(type) {
	case *Response_Forward:
		return b.Forward.validate()
	case *Response_Query:
		return b.Query.validate()
	case *Response_WhoOwns:
		return b.WhoOwns.validate()
	case *Response_Show:
		return present(b.Show != nil)
	case *Response_Status:
		return present(b.Status != nil)
	case *Response_Records:
		return b.Records.validate()
	case *Response_Lease:
		return b.Lease.validate()
	case *Response_Ballots:
		return b.Ballots.validate()
	case *Response_Configs:
		return checkConfigs("configs", b.Configs.GetKnown(), b.Configs != nil)
	case *Response_Ship:
		return b.Ship.validate()
	case *Response_Compare:
		return b.Compare.validate()
	case *Response_Unite:
		return present(b.Unite != nil)
	case *Response_Turns:
		return b.Turns.validate()
	case *Response_Overrule:
		return present(b.Overrule != nil)
	case *Response_Copies:
		return b.Copies.validate()
	}
	return ErrNoBody
}

// present returns ErrNoBody if a body without other checks is nil.
func present(ok bool) error {
	if !ok {
		return ErrNoBody
	}
	return nil
}

// validate checks the code, which the receiver acts on, and the length of the reason.
func (m *Refusal) validate() error {
	if _, ok := Refusal_Code_name[int32(m.Code)]; !ok || m.Code == Refusal_CODE_UNSPECIFIED {
		return fmt.Errorf("refusal code %d: %w", m.Code, ErrMalformed)
	}
	return checkText("refusal reason", m.Reason, MaxText)
}

// validate checks the number and lengths of links. Whether a key is valid is decided for each link,
// so that one bad link does not refuse the others.
func (m *Forward) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Links) > MaxLinks {
		return over("links of a forward", len(m.Links), MaxLinks)
	}
	for _, l := range m.Links {
		if err := checkKey("link key", l.GetKey()); err != nil {
			return err
		}
		if err := checkText("link referrer", l.Referrer, MaxKey); err != nil {
			return err
		}
	}
	return nil
}

// validate checks the answers of a Forward. Their number is not compared with that of the links,
// which only the caller knows.
func (m *ForwardAck) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Answers) > MaxLinks {
		return over("answers of an ack", len(m.Answers), MaxLinks)
	}
	// Reasons belong to answers by index. There may be fewer.
	if len(m.Reasons) > len(m.Answers) {
		return fmt.Errorf("%d reasons for %d answers: %w", len(m.Reasons), len(m.Answers), ErrMalformed)
	}
	for _, x := range m.Moved {
		// Link is the index of a link in the Forward, which has as many links as there are answers.
		if int(x.GetLink()) >= len(m.Answers) {
			return fmt.Errorf("link %d of %d moved: %w", x.GetLink(), len(m.Answers), ErrMalformed)
		}
	}
	for _, a := range m.Answers {
		if _, ok := ForwardAck_Answer_name[int32(a)]; !ok || a == ForwardAck_ANSWER_UNSPECIFIED {
			return fmt.Errorf("answer %d: %w", a, ErrMalformed)
		}
	}
	for _, r := range m.Reasons {
		if err := checkText("reason", r, MaxText); err != nil {
			return err
		}
	}
	return checkText("owner", m.Owner, MaxPeerID)
}

// validate checks that a query names slices or a zone, but not both. It may name neither.
func (m *Query) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Slices) > MaxSlices {
		return over("slices of a query", len(m.Slices), MaxSlices)
	}
	if m.Limit > MaxHits {
		return over("query limit", int(m.Limit), MaxHits)
	}
	if err := checkZone(m.Zone); err != nil {
		return err
	}
	// A query of a zone is for all of its slices.
	if m.Zone != 0 && len(m.Slices) > 0 {
		return fmt.Errorf("a query of a zone and of slices: %w", ErrMalformed)
	}
	if err := checkText("query text", m.Q, MaxQuery); err != nil {
		return err
	}
	for _, s := range []string{m.Kind, m.Lang, m.Site} {
		if err := checkText("query filter", s, MaxText); err != nil {
			return err
		}
	}
	if err := m.Facets.validate(); err != nil {
		return err
	}
	if err := m.After.validate(); err != nil {
		return err
	}
	return m.Stats.validate()
}

// validate accepts a missing place.
func (m *Place) validate() error {
	if m == nil {
		return nil
	}
	if !finite(m.Score) {
		return fmt.Errorf("score %v: %w", m.Score, ErrMalformed)
	}
	if err := checkKey("key of a place", m.Key); err != nil {
		return err
	}
	return checkText("post of a place", m.Post, MaxText)
}

// validate accepts missing facets.
func (m *Facets) validate() error {
	if m == nil {
		return nil
	}
	for _, s := range []string{m.Place, m.Scope, m.Verdict} {
		if err := checkText("query facet", s, MaxText); err != nil {
			return err
		}
	}
	// RadiusKm 0 means anywhere. Even then the point must be on the globe.
	if !(partition.Point{Lat: m.Lat, Lon: m.Lon}).Valid() || !finite(m.RadiusKm) || m.RadiusKm < 0 {
		return fmt.Errorf("%v km around %v, %v: %w", m.RadiusKm, m.Lat, m.Lon, ErrMalformed)
	}
	return nil
}

// validate accepts missing statistics.
func (m *TermStats) validate() error {
	if m == nil {
		return nil
	}
	if len(m.Df) > MaxTerms {
		return over("terms", len(m.Df), MaxTerms)
	}
	if len(m.Opaque) > MaxOpaque {
		return over("opaque statistics", len(m.Opaque), MaxOpaque)
	}
	if !finite(m.AvgLen) || m.AvgLen < 0 {
		return fmt.Errorf("average length %v: %w", m.AvgLen, ErrMalformed)
	}
	for t := range m.Df {
		if err := checkText("term", t, MaxText); err != nil {
			return err
		}
	}
	return nil
}

// validate checks the numbers of hits and slices, and each hit.
func (m *QueryAnswer) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Hits) > MaxHits {
		return over("hits", len(m.Hits), MaxHits)
	}
	if len(m.Missing) > MaxSlices {
		return over("missing slices", len(m.Missing), MaxSlices)
	}
	for _, h := range m.Hits {
		if err := h.validate(); err != nil {
			return err
		}
	}
	return m.Stats.validate()
}

// validate checks the key, the score, and the length of each text. A NaN score would break the
// order of hits.
func (m *Hit) validate() error {
	if err := checkKey("hit key", m.GetKey()); err != nil {
		return err
	}
	if !finite(m.Score) {
		return fmt.Errorf("score %v: %w", m.Score, ErrMalformed)
	}
	for _, s := range []string{m.Kind, m.Title, m.Snippet, m.Lang, m.Place, m.Period, m.Verdict} {
		if err := checkText("hit text", s, MaxText); err != nil {
			return err
		}
	}
	if len(m.Print) > MaxPrint {
		return over("print of a hit", len(m.Print), MaxPrint)
	}
	if err := checkText("hit post", m.Post, MaxKey); err != nil {
		return err
	}
	return checkText("hit peer", m.Peer, MaxPeerID)
}

// validate checks that there is either a key or a slice.
func (m *WhoOwns) validate() error {
	// Without a slice the question is about a key.
	if m.GetSlice() == 0 {
		return checkKey("who-owns key", m.GetKey())
	}
	if m.Key != "" {
		return fmt.Errorf("who owns a key or a slice, not both: %w", ErrMalformed)
	}
	return checkSlice(m.Slice)
}

// checkSlice refuses numbers that are no slice.
func checkSlice(s uint64) error {
	if !partition.Slice(s).Valid() {
		return fmt.Errorf("%016x is no slice: %w", s, ErrMalformed)
	}
	return nil
}

// checkZone accepts 0, which names no zone.
func checkZone(z uint64) error {
	if z != 0 && !partition.Zone(z).Valid() {
		return fmt.Errorf("%016x is no zone: %w", z, ErrMalformed)
	}
	return nil
}

// validate checks lengths and numbers only. Package zone checks whether the answer can be true.
func (m *WhoOwnsAnswer) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if err := checkZone(m.Zone); err != nil {
		return err
	}
	if len(m.Sealed) > MaxDescriptor {
		return over("descriptor", len(m.Sealed), MaxDescriptor)
	}
	if len(m.Keepers) > MaxPeers {
		return over("keepers", len(m.Keepers), MaxPeers)
	}
	if len(m.Addrs) > MaxPeers {
		return over("addresses", len(m.Addrs), MaxPeers)
	}
	for _, s := range m.Keepers {
		if err := checkText("replica", s, MaxPeerID); err != nil {
			return err
		}
	}
	for _, s := range m.Addrs {
		if err := checkText("address", s, MaxPeerID); err != nil {
			return err
		}
	}
	return nil
}

// validate checks the cursor and the limits. Without slices, the request is for all slices.
func (m *Records) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Slices) > MaxSlices {
		return over("slices of an export", len(m.Slices), MaxSlices)
	}
	if m.Limit > MaxRecords {
		return over("export limit", int(m.Limit), MaxRecords)
	}
	if len(m.AfterPart) > MaxPart {
		return over("export cursor", len(m.AfterPart), MaxPart)
	}
	if err := checkText("export filter", m.Only, MaxText); err != nil {
		return err
	}
	return checkText("export cursor", m.After, MaxKey)
}

// validate checks that there are no more slices or parts than records, because they belong to
// records by index.
func (m *RecordsAnswer) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Records) > MaxRecords {
		return over("records", len(m.Records), MaxRecords)
	}
	// Slices and Parts belong to records by index. There may be fewer.
	if len(m.Slices) > len(m.Records) {
		return fmt.Errorf("%d slices of %d records: %w", len(m.Slices), len(m.Records), ErrMalformed)
	}
	if len(m.Parts) > len(m.Records) {
		return fmt.Errorf("%d parts of %d records: %w", len(m.Parts), len(m.Records), ErrMalformed)
	}
	for _, p := range m.Parts {
		if len(p) > MaxPart {
			return over("part of a record", len(p), MaxPart)
		}
	}
	if len(m.Whole) > MaxSlices {
		return over("whole slices", len(m.Whole), MaxSlices)
	}
	return checkText("export cursor", m.Next, MaxKey)
}

// checkKey checks only the length; partition.KeyFromWire checks whether it is a Key.
func checkKey(what, s string) error {
	if s == "" {
		return fmt.Errorf("%s is empty: %w", what, ErrMalformed)
	}
	return checkText(what, s, MaxKey)
}

// checkText checks the length in bytes. It does not check whether s is valid UTF-8, because
// protobuf does that.
func checkText(what, s string, limit int) error {
	if len(s) > limit {
		return over(what, len(s), limit)
	}
	return nil
}

// finite reports whether f is neither NaN nor infinite.
func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }
