package wire

import (
	"fmt"
	"math"

	"github.com/echo-node/echo-node/partition"
)

// Validate checks everything about m that can be known without the receiver's
// state. A nil error means that m has exactly one body, that each text, list
// and number is within its limit, and that enumerations are known.
func (m *Request) Validate() error {
	if m == nil {
		return ErrNoBody
	}
	if m.Version != partition.WireVersion {
		return fmt.Errorf("message version %d, this peer speaks %d: %w", m.Version, partition.WireVersion, ErrVersion)
	}
	if len(m.View) != 0 && len(m.View) != 8 {
		return fmt.Errorf("view digest of %d bytes: %w", len(m.View), ErrMalformed)
	}
	switch b := m.Body.(type) {
	case *Request_Forward:
		return b.Forward.validate()
	case *Request_Query:
		return b.Query.validate()
	case *Request_WhoOwns:
		return checkKey("who-owns key", b.WhoOwns.GetKey())
	case *Request_Show:
		return checkKey("show key", b.Show.GetKey())
	case *Request_Status:
		return present(b.Status != nil)
	case *Request_Transfer:
		return b.Transfer.validate()
	case *Request_Records:
		return b.Records.validate()
	}
	return ErrNoBody
}

// Validate is Request.Validate for a Response: a refusal, or exactly one body.
func (m *Response) Validate() error {
	if m == nil {
		return ErrNoBody
	}
	if m.Version != partition.WireVersion {
		return fmt.Errorf("message version %d, this peer speaks %d: %w", m.Version, partition.WireVersion, ErrVersion)
	}
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
	case *Response_Transfer:
		return b.Transfer.validate()
	case *Response_Records:
		return b.Records.validate()
	}
	return ErrNoBody
}

func present(ok bool) error {
	if !ok {
		return ErrNoBody
	}
	return nil
}

func (m *Refusal) validate() error {
	if _, ok := Refusal_Code_name[int32(m.Code)]; !ok || m.Code == Refusal_CODE_UNSPECIFIED {
		return fmt.Errorf("refusal code %d: %w", m.Code, ErrMalformed)
	}
	return checkText("refusal reason", m.Reason, MaxText)
}

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

func (m *ForwardAck) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Answers) > MaxLinks {
		return over("answers of an ack", len(m.Answers), MaxLinks)
	}
	if len(m.Reasons) > len(m.Answers) {
		return fmt.Errorf("%d reasons for %d answers: %w", len(m.Reasons), len(m.Answers), ErrMalformed)
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
	if err := checkText("query text", m.Q, MaxQuery); err != nil {
		return err
	}
	for _, s := range []string{m.Kind, m.Lang, m.Site} {
		if err := checkText("query filter", s, MaxText); err != nil {
			return err
		}
	}
	return m.Stats.validate()
}

// validate of statistics allows none.
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

func (m *Hit) validate() error {
	if err := checkKey("hit key", m.GetKey()); err != nil {
		return err
	}
	if !finite(m.Score) {
		return fmt.Errorf("score %v: %w", m.Score, ErrMalformed)
	}
	for _, s := range []string{m.Kind, m.Title, m.Snippet, m.Lang, m.Place} {
		if err := checkText("hit text", s, MaxText); err != nil {
			return err
		}
	}
	return checkText("hit peer", m.Peer, MaxPeerID)
}

func (m *WhoOwnsAnswer) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Keepers) > MaxPeers {
		return over("keepers", len(m.Keepers), MaxPeers)
	}
	if len(m.Addrs) > MaxPeers {
		return over("addresses", len(m.Addrs), MaxPeers)
	}
	for _, s := range m.Keepers {
		if err := checkText("keeper", s, MaxPeerID); err != nil {
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

func (m *Transfer) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Slices) > MaxSlices {
		return over("slices of a transfer", len(m.Slices), MaxSlices)
	}
	if len(m.After) > MaxRowKey {
		return over("transfer cursor", len(m.After), MaxRowKey)
	}
	return nil
}

func (m *TransferAnswer) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Holds) > MaxSlices {
		return over("held slices", len(m.Holds), MaxSlices)
	}
	if len(m.Empty) > MaxSlices {
		return over("empty slices", len(m.Empty), MaxSlices)
	}
	if len(m.Rows) > MaxRows {
		return over("rows", len(m.Rows), MaxRows)
	}
	for _, r := range m.Rows {
		if len(r.GetKey()) > MaxRowKey {
			return over("row key", len(r.Key), MaxRowKey)
		}
	}
	if len(m.Next) > MaxRowKey {
		return over("transfer cursor", len(m.Next), MaxRowKey)
	}
	return nil
}

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
	return checkText("export cursor", m.After, MaxKey)
}

func (m *RecordsAnswer) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Records) > MaxRecords {
		return over("records", len(m.Records), MaxRecords)
	}
	return checkText("export cursor", m.Next, MaxKey)
}

// checkKey checks the length only: what a Key is, partition.KeyFromWire says.
func checkKey(what, s string) error {
	if s == "" {
		return fmt.Errorf("%s is empty: %w", what, ErrMalformed)
	}
	return checkText(what, s, MaxKey)
}

func checkText(what, s string, limit int) error {
	if len(s) > limit {
		return over(what, len(s), limit)
	}
	return nil
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }
