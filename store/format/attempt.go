package format

import (
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

func (e *Encoder) attempt(a store.Attempt) {
	e.Time(a.At)
	e.Text(a.Peer)
	e.Text(a.Run)
}

func (d *Decoder) attempt() store.Attempt {
	return store.Attempt{At: d.Time(), Peer: d.text(store.MaxHeader), Run: d.text(store.MaxRun)}
}

// EncodeTrial returns the row of t.
func EncodeTrial(t store.Trial) []byte {
	e := Encoder{B: make([]byte, 0, 128)}
	e.Byte(RowVersion)
	e.attempt(t.Open)
	e.Time(t.Ended)
	e.uint(uint64(len(t.Deaths)))
	for _, a := range t.Deaths {
		e.attempt(a)
	}
	return e.B
}

// DecodeTrial is the inverse of EncodeTrial.
func DecodeTrial(b []byte) (store.Trial, error) {
	d := NewDecoder(b)
	t := store.Trial{Open: d.attempt(), Ended: d.Time()}
	for range d.Uint(store.KeptDeaths) {
		t.Deaths = append(t.Deaths, d.attempt())
	}
	return t, d.End("attempt")
}

// checkTrial is CheckItem for attempts.
func checkTrial(id ItemID, b []byte) (canonical []byte, at time.Time, err error) {
	t, err := DecodeTrial(b)
	if err == nil && (id.Part != "" || len(b) > store.MaxAttemptRow || t.Open.At.IsZero() && len(t.Deaths) == 0) {
		err = ErrBadRow
	}
	if err != nil {
		return nil, at, err
	}
	t.Deaths = store.JoinDeaths(t.Deaths, nil)
	for _, x := range append([]store.Attempt{t.Open, {At: t.Ended}}, t.Deaths...) {
		if x.At.After(at) {
			at = x.At
		}
	}
	return EncodeTrial(t), at, nil
}

// JoinTrials joins two encoded Trials, see store.Trial.Join.
func JoinTrials(a, b []byte) ([]byte, error) {
	x, err := DecodeTrial(a)
	if err != nil {
		return nil, err
	}
	y, err := DecodeTrial(b)
	if err != nil {
		return nil, err
	}
	return EncodeTrial(x.Join(y)), nil
}

// TrialID identifies the row of the attempts at k.
func TrialID(id SiteID, k partition.Key) ItemID {
	return ItemID{SiteID: id, Table: TabAttempt, Key: k}
}
