package forward

import (
	"fmt"
	"testing"
	"time"

	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// oneZone is a swarm without zones.
type oneZone struct{ Peers }

func (oneZone) Foreign(partition.Slice) bool { return false }

func testCharter() partition.Charter {
	c := partition.DefaultCharter("test", "founder")
	c.SliceBits = 4
	return c
}

// A change of owners may give rows to a lane in any order. If the lane's peer does not accept them,
// all are read again: none is left out, and none is sent twice.
func TestLaneReadsAllAgain(t *testing.T) {
	all := testCharter().Slices()
	f := New(Options{Self: "self", Quorum: quorum.New(quorum.Options{Self: "self", Founder: "other", Slices: all}),
		Peers: oneZone{}}, nil)
	row := func(seq uint64) store.OutboxRow {
		return store.OutboxRow{Seq: seq, To: all[0],
			Admission: store.Admission{Key: partition.Key(fmt.Sprint("web:http://h.example/", seq))}}
	}
	f.assign([]store.OutboxRow{row(500), row(501)})
	l := f.lanes["other"]
	l.busy = true // 500 is being sent
	batch := l.rows[:1]
	f.Reread()
	f.assign([]store.OutboxRow{row(1), row(2), row(500), row(501)})
	if len(l.rows) != 4 {
		t.Fatalf("%d rows in the lane, 4 are to be sent", len(l.rows))
	}
	f.next = 501
	f.settle(l, batch, 0, time.Minute)
	if len(l.rows) != 0 || l.failures != 1 {
		t.Fatalf("%d rows, %d failures after a refusal", len(l.rows), l.failures)
	}
	f.retry(time.Now())
	if f.next != 501 {
		t.Fatal("read again before its time")
	}
	f.retry(time.Now().Add(2 * time.Minute))
	if f.next != 0 {
		t.Fatalf("reading goes on after %d: rows below stay behind", f.next)
	}
	f.assign([]store.OutboxRow{row(1)})
	if len(l.rows) != 0 {
		t.Fatal("dealt before its time")
	}
	l.until = time.Time{}
	f.retry(time.Now())
	f.assign([]store.OutboxRow{row(1), row(2)})
	f.settle(l, l.rows[:1], 1, 0)
	f.assign([]store.OutboxRow{row(2), row(3)})
	if len(l.rows) != 2 || l.rows[0].Seq != 2 || l.rows[1].Seq != 3 {
		t.Fatalf("%v", l.rows)
	}
}

// This peer becomes the owner of a slice while the outbox is read, and Reread is called during the
// reading. The reading left out the slice's rows, so they are read again. That also holds if the
// reading had only started; once, those rows then stayed in the outbox for ever.
func TestOwnersChangeWhileTheOutboxIsRead(t *testing.T) {
	o := Options{Self: "self",
		Quorum: quorum.New(quorum.Options{Self: "self", Founder: "other", Slices: testCharter().Slices()})}
	for _, from := range []uint64{0, 7} {
		f := New(o, nil)
		f.next = from
		again := f.again
		f.Reread()
		f.dealt(nil, 20, again)
		if f.next != 0 {
			t.Errorf("a reading from %d on: goes on after %d, what was left out is never sent", from, f.next)
		}
		if f.dealt(nil, 20, f.again); f.next != 20 {
			t.Errorf("a reading that nothing falls into: goes on after %d", f.next)
		}
	}
}
