package budget

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"
)

// Format of a snapshot, version 1. Numbers are unsigned LEB128 varints in their shortest form;
// signed ones are zigzag. A text follows its length. Times are Unix nanoseconds.
//
//	byte      version = 1
//	text      site, text credential
//	time      of writing
//	clock     signed lo, signed hi, time at, byte jumps
//	varint    highest ticket, refusals, calls
//	holds     number, and each: text class, time until, varint in a row, text reason
//	buckets   number, and each:
//	  text    name, kind, unit, origin of the limit, class ("" = of the table)
//	  varint  window + 1 (0 = a month), limit of the table, limit in force, latest reservation,
//	          settled
//	  opens   number, and each: id, amount, time, signed from and to, seen
//	  windows number, and each: signed window, amount
//	  log     number, and each: time from, time at less from, amount
//	  numbers tat, reported left lo hi, lowered limit at retry step patience
//	  pace    5 × 8 bytes: rate, guess, window, top, slow; time of the last cut,
//	          byte 1 = no response since
//
// Format of an intent, version 1: byte version, varint ticket, text credential, text class, time,
// varint items, varint paid.
const snapshotTag = 1

// Limits of a snapshot.
const (
	MaxSnapshot = 4 << 20 // bytes
	maxReason   = 200
	maxTime     = far
)

// Snapshot returns the state of one credential, or of AddressOf, to store or to hand over. The
// typical size is 300 bytes; a sliding bucket in full use adds up to 10 KiB.
func (b *Book) Snapshot(credential string) ([]byte, error) {
	l := b.ledger(credential)
	if l == nil {
		return nil, fmt.Errorf("budget: %w: %q at %s", ErrCredential, clip(credential), b.site)
	}
	return encode(&image{site: b.site, now: b.now, clock: b.clock, ledger: *l}), nil
}

// ledger returns the ledger of a credential or of AddressOf, nil if there is none.
func (b *Book) ledger(name string) *ledger {
	for _, l := range b.ledgers() {
		if l.name == name {
			return l
		}
	}
	return nil
}

// Restore loads the state of a credential after Add, or of AddressOf after Add of any credential.
// It takes a snapshot (nil = none) and the intents written since then. A call that was reserved and
// not settled counts as made. On a fault the Book is unchanged and the error wraps ErrSnapshot. If
// a bucket of the table now counts differently, its used amount counts from now.
func (b *Book) Restore(credential string, snapshot []byte, intents [][]byte, now time.Time) error {
	b.tick(now)
	l := b.ledger(credential)
	if l == nil {
		return fmt.Errorf("budget: %w: %q at %s", ErrCredential, clip(credential), b.site)
	}
	im := &image{}
	var err error
	if len(snapshot) > 0 {
		if im, err = decode(snapshot); err == nil && (im.site != b.site || im.ledger.name != credential) {
			err = fmt.Errorf("%w: of another site or credential", ErrSnapshot)
		}
	}
	tickets := make([]Ticket, len(intents))
	for i := range intents {
		if err == nil {
			tickets[i], err = ParseTicket(intents[i])
		}
	}
	if err != nil {
		return fmt.Errorf("budget: restore %s: %w", b.site, err)
	}
	if len(snapshot) > 0 {
		b.revive(l, im)
	}
	slices.SortFunc(tickets, func(x, y Ticket) int { return int(min(max(int64(x.ID-y.ID), -1), 1)) })
	for _, t := range tickets {
		b.replay(l, t)
	}
	b.tick(now)
	return nil
}

// revive copies a snapshot's state into l.
func (b *Book) revive(l *ledger, im *image) {
	if d := b.now - im.now; d < 0 { // our clock was set back since the snapshot
		im.clock.shift(d)
		for _, k := range im.ledger.buckets {
			k.shift(d)
		}
		for i := range im.ledger.holds {
			im.ledger.holds[i].until += d
		}
	}
	if im.clock.at > b.clock.at && im.clock.sane() {
		b.clock = im.clock
	}
	l.last, l.refused, l.calls = max(l.last, im.ledger.last), im.ledger.refused, im.ledger.calls
	l.holds = im.ledger.holds
	b.serial = max(b.serial, l.last)
	for _, k := range im.ledger.buckets {
		opens := slices.Clone(k.opens)
		for _, o := range opens {
			k.done(o.id, o.sent+int64(b.o.Flight), o.n, &b.clock)
		}
		mine := l.find(k.spec.Name)
		switch {
		case mine == nil && k.class != "" && l.table != nil && l.table.class(k.class) != nil:
			l.buckets = append(l.buckets, k)
		case mine == nil:
		case mine.spec.Kind == k.spec.Kind && mine.spec.Window == k.spec.Window && mine.spec.unit() == k.spec.unit():
			if k.by != ByHeaders || mine.by == BySetting {
				k.limit, k.by = mine.limit, mine.by
			}
			if guess := mine.pace.guess; guess != k.pace.guess {
				k.pace = mine.pace
			}
			k.spec = mine.spec
			*mine = *k
		default:
			mine.use(k.used(), b.now, &b.clock)
		}
	}
}

// used returns an upper bound of the amount that counts now.
func (b *bucket) used() (n int64) {
	for _, w := range b.wins {
		n = max(n, w.n)
	}
	for _, s := range b.log {
		n += s.n
	}
	return n
}

// replay counts the intent of a call that an earlier process may have made.
func (b *Book) replay(l *ledger, t Ticket) {
	if t.ID <= l.last {
		return
	}
	l.last, b.serial = t.ID, max(b.serial, t.ID)
	of := b.ledger(t.Credential)
	if of == nil || of.table == nil {
		return
	}
	all, err := b.needs(of, t.Class, t.Ask)
	if err != nil {
		return // the class no longer exists
	}
	sent := min(t.At.UnixNano(), b.now)
	for _, n := range all {
		if n.of == l {
			n.in.take(t.ID, n.n, sent, &b.clock)
			n.in.done(t.ID, sent+int64(b.o.Flight), n.n, &b.clock)
		}
	}
}

// image is the content of a snapshot.
type image struct {
	site   string
	now    int64
	clock  clock
	ledger ledger
}

// encoder appends values in the format of a snapshot.
type encoder struct{ b []byte }

func (e *encoder) num(ns ...int64) {
	for _, n := range ns {
		e.b = binary.AppendUvarint(e.b, uint64(n))
	}
}

func (e *encoder) signed(ns ...int64) {
	for _, n := range ns {
		e.b = binary.AppendVarint(e.b, n)
	}
}

func (e *encoder) text(ss ...string) {
	for _, s := range ss {
		e.num(int64(len(s)))
		e.b = append(e.b, s...)
	}
}

func (e *encoder) float(fs ...float64) {
	for _, f := range fs {
		e.b = binary.BigEndian.AppendUint64(e.b, math.Float64bits(f))
	}
}

func (e *encoder) flag(set bool) {
	c := byte(0)
	if set {
		c = 1
	}
	e.b = append(e.b, c)
}

// encode returns the bytes of a snapshot.
func encode(im *image) []byte {
	e := encoder{b: []byte{snapshotTag}}
	l := &im.ledger
	e.text(im.site, l.name)
	e.num(im.now)
	e.signed(im.clock.lo, im.clock.hi)
	e.num(im.clock.at)
	e.b = append(e.b, im.clock.jumps)
	e.num(int64(l.last), l.refused, l.calls, int64(len(l.holds)))
	for _, h := range l.holds {
		e.text(h.class)
		e.num(h.until, h.fails)
		e.text(h.reason)
	}
	e.num(int64(len(l.buckets)))
	for _, k := range l.buckets {
		e.bucket(k)
	}
	return e.b
}

func (e *encoder) bucket(k *bucket) {
	s := &k.spec
	e.text(s.Name, string(s.Kind), string(s.unit()), string(k.by), k.class)
	e.num(int64(s.Window)+1, s.Limit, k.limit, k.last, k.settled, int64(len(k.opens)))
	for _, o := range k.opens {
		e.num(int64(o.id), o.n, o.sent)
		e.signed(o.from, o.to)
		e.num(o.seen)
	}
	e.num(int64(len(k.wins)))
	for _, w := range k.wins {
		e.signed(w.window)
		e.num(w.n)
	}
	e.num(int64(len(k.log)))
	for _, s := range k.log {
		e.num(s.from, s.at-s.from, s.n)
	}
	e.num(k.tat, k.reported.left, k.reported.lo, k.reported.hi, k.cut.limit, k.cut.at, k.cut.retry,
		k.cut.step, k.cut.patience)
	e.float(k.pace.rate, k.pace.guess, k.pace.window, k.pace.top, k.pace.slow)
	e.num(k.pace.cut)
	e.flag(k.pace.down)
}

// Append appends the intent of t to b. The caller stores it, so that a crash does not lose the
// call.
func (t Ticket) Append(b []byte) []byte {
	e := encoder{b: append(b, snapshotTag)}
	e.num(int64(t.ID))
	e.text(t.Credential, t.Class)
	e.num(t.At.UnixNano(), t.Ask.Items, t.Ask.Paid)
	return e.b
}

// ParseTicket reads an intent; the error wraps ErrSnapshot.
func ParseTicket(b []byte) (Ticket, error) {
	d := decoder{b: b}
	d.version()
	t := Ticket{ID: uint64(d.num(maxTime)), Credential: d.text(maxName), Class: d.text(maxName)}
	t.At = time.Unix(0, d.num(maxTime)).UTC()
	t.Ask = Ask{Items: d.num(MaxLimit), Paid: d.num(MaxLimit)}
	if err := d.end(); err != nil {
		return Ticket{}, err
	}
	return t, nil
}

// decoder continues after a fault and then returns zeros; err is the first fault.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: "+format, append([]any{ErrSnapshot}, args...)...)
	}
	d.b = nil
}

// end returns the first fault; bytes that remain are a fault.
func (d *decoder) end() error {
	if len(d.b) > 0 {
		d.fail("%d bytes too many", len(d.b))
	}
	return d.err
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail("cut short")
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) version() {
	if v := d.byte(); v != snapshotTag {
		d.fail("version %d", v)
	}
}

// num reads an unsigned number from 0 to limit.
func (d *decoder) num(limit int64) int64 {
	v, n := binary.Uvarint(d.b)
	switch {
	case n <= 0:
		d.fail("bad number")
		return 0
	case v > uint64(limit):
		d.fail("number %d over %d", v, limit)
		return 0
	case n > 1 && d.b[n-1] == 0:
		d.fail("number not in its shortest form")
		return 0
	}
	d.b = d.b[n:]
	return int64(v)
}

// signed reads a signed number from -limit to limit.
func (d *decoder) signed(limit int64) int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 || v > limit || v < -limit || n > 1 && d.b[n-1] == 0 {
		d.fail("bad signed number")
		return 0
	}
	d.b = d.b[n:]
	return v
}

// text reads a text of at most limit bytes.
func (d *decoder) text(limit int) string {
	n := int(d.num(int64(limit)))
	if n > len(d.b) {
		d.fail("cut short")
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

// float reads a number from least to most. Negative zero is a fault, so each value has one form.
func (d *decoder) float(least, most float64) float64 {
	if len(d.b) < 8 {
		d.fail("cut short")
		return 0
	}
	f := math.Float64frombits(binary.BigEndian.Uint64(d.b))
	d.b = d.b[8:]
	if !(f >= least && f <= most) || f == 0 && math.Signbit(f) {
		d.fail("number %g", f)
		return 0
	}
	return f
}

// decode reads a snapshot; it checks each value, because the bytes may come from another peer.
func decode(b []byte) (*image, error) {
	if len(b) > MaxSnapshot {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrSnapshot, len(b), MaxSnapshot)
	}
	d := decoder{b: b}
	d.version()
	im := &image{site: d.text(MaxHeader)}
	l := &im.ledger
	l.name, im.now = d.text(maxName), d.num(maxTime)
	most := 2 * maxSkew
	im.clock = clock{lo: d.signed(most), hi: d.signed(most), at: d.num(maxTime), jumps: d.byte()}
	if c := &im.clock; c.lo > c.hi || c.hi-c.lo > int64(2*MaxFlight) || c.jumps > maxJumps {
		d.fail("clock %+v", *c)
	}
	l.last, l.refused, l.calls = uint64(d.num(maxTime)), d.num(MaxLimit), d.num(MaxLimit)
	for range d.num(maxEntries + 1) {
		l.holds = append(l.holds, hold{class: d.text(maxName), until: d.num(maxTime), fails: d.num(30),
			reason: d.text(maxReason)})
	}
	for range d.num(maxEntries + maxLearned) {
		if d.err != nil {
			break
		}
		l.buckets = append(l.buckets, d.bucket())
	}
	if err := d.end(); err != nil {
		return nil, err
	}
	return im, nil
}

// bucket reads one bucket of a snapshot.
func (d *decoder) bucket() *bucket {
	k := &bucket{}
	s := &k.spec
	s.Name, s.Kind, s.Unit, k.by, k.class = d.text(maxName), Kind(d.text(maxName)), Unit(d.text(maxName)),
		Origin(d.text(maxName)), d.text(maxName)
	s.Window, s.Limit = Span(d.num(int64(MaxWindow)+1)-1), d.num(MaxLimit)
	k.limit, k.last, k.settled = d.num(MaxLimit), d.num(maxTime), d.num(maxTime)
	if err := s.validate(); err != nil && d.err == nil || s.Unit == "" ||
		!slices.Contains([]Origin{ByTable, BySetting, ByHeaders}, k.by) {
		d.fail("bucket %q: %v", clip(s.Name), err)
	}
	for range d.num(MaxOpen) {
		if d.err != nil {
			break
		}
		k.opens = append(k.opens, open{id: uint64(d.num(maxTime)), n: d.num(MaxLimit), sent: d.num(maxTime),
			from: d.signed(maxTime), to: d.signed(maxTime), seen: d.num(maxTime)})
	}
	for range d.num(4 * maxCrossed) {
		k.wins = append(k.wins, count{d.signed(maxTime), d.num(MaxLimit)})
	}
	for range d.num(2*resolution + 1) {
		from := d.num(maxTime)
		k.log = append(k.log, spent{from: from, at: from + d.num(int64(MaxWindow)), n: d.num(MaxLimit)})
		if d.err != nil {
			break
		}
	}
	k.tat, k.reported = d.num(maxTime), reported{d.num(MaxLimit), d.num(maxTime), d.num(maxTime)}
	k.cut = lowering{d.num(MaxLimit), d.num(maxTime), d.num(maxTime), d.num(MaxLimit), d.num(maxPatience)}
	k.pace = pace{rate: d.float(0, 1e15), guess: d.float(0, 1e12), window: d.float(0, 1e9), top: d.float(0, 1e15),
		slow: d.float(0, 1), cut: d.num(maxTime), down: d.num(1) == 1}
	if d.err == nil {
		d.check(k)
	}
	return k
}

// check rejects values that the encoder never writes.
func (d *decoder) check(k *bucket) {
	if k.spec.Kind == Adaptive && !(k.pace.rate >= k.pace.guess/paceRange && k.pace.rate > 0 && k.pace.window > 0) {
		d.fail("pace %+v", k.pace)
	}
	for i := range k.log {
		if i > 0 && k.log[i].at < k.log[i-1].at {
			d.fail("log out of order")
		}
	}
	if k.spec.Kind != Aligned {
		return
	}
	least, most := k.index(-maxSkew), k.index(maxTime)
	for i, w := range k.wins {
		if w.window < least || w.window > most || i > 0 && w.window <= k.wins[i-1].window {
			d.fail("windows out of order")
		}
	}
	for i := range k.opens {
		if o := &k.opens[i]; o.from < least || o.to > most || o.from > o.to || o.to-o.from > maxCrossed {
			d.fail("windows of a call")
		}
	}
}
