package replog

import (
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/format"
)

// item validates an item of another peer.
func (v *validator) item(i *incoming, t format.Table, rest, value []byte) error {
	var part string
	k, part, err := format.CutItem(rest)
	if err != nil {
		return err
	}
	if i.key, err = partition.KeyFromWire(string(k)); err != nil {
		return err
	}
	if err := v.home(i); err != nil {
		return err
	}
	i.item = &format.ItemID{SiteID: i.id, Table: t, Key: i.key, Part: part}
	if i.sent = t == format.TabAttempt && len(value) == 0; i.sent {
		return nil
	}
	state := value
	if format.IsPacked(t) {
		if state, err = v.unpack(value, format.MaxItem(t)); err != nil {
			return err
		}
	}
	var at time.Time
	if i.body, at, err = format.CheckItem(*i.item, state); err == nil {
		err = v.timely(at)
	}
	return err
}

// item joins an item of another peer to the one here.
func (m *merger) item(i incoming) error {
	if m.t.s.engine.Charter().Mode == partition.ModeGeo {
		if _, err := m.stateOf(i.id, i.key); err != nil { // end drops items of placed Keys
			return err
		}
	}
	switch {
	case i.sent && m.log:
		return m.t.TrialGone(i.item.Row()) // the slice's owner says so in its log
	case i.sent:
		return nil // the row is gone there; only a log deletes rows
	}
	if i.item.Table == format.TabAttempt && !m.log {
		if stale, err := m.staleTrial(i); stale || err != nil {
			return err
		}
	}
	if err := m.t.Item(*i.item, i.body); err != nil {
		return err
	}
	if t := i.item.Table; t == format.TabGap || t == format.TabWalk || t == format.TabOverride {
		m.capped[format.ItemID{SiteID: i.id, Table: t, Key: i.key}] = true
	}
	return nil
}
