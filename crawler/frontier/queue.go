package frontier

import (
	"math"
	"slices"
)

// queue returns sites in order of key, and sites with equal keys in order of turn. It is a calendar
// queue (Brown, CACM 31(10), 1988). Entries lie unsorted in buckets of about 4 ms of keys, and only
// the current bucket is a heap. So a push or a pop costs the same with 1,000 sites as with 200,000.
// One heap of all sites would miss the cache at each of its levels.
//
// When a site is removed or moved, its old entry stays in the queue and is skipped later. There are
// at most as many old entries as sites, plus 64.
//
// The zero value is not usable; see newQueue.
type queue struct {
	soon    []entry           // a heap of the entries with keys below bound
	bound   int64             // the entries in buckets have keys of at least bound
	buckets map[int64][]entry // by key >> bucketBits, unsorted
	order   []int64           // a heap of the numbers of the buckets
	n       int               // number of sites
	held    int               // number of entries: n plus the old ones
	spare   [][]entry         // emptied buckets, for reuse
}

// bucketBits is the base-2 logarithm of a bucket's width in nanoseconds.
const bucketBits = 22

// maxSpare is the maximum length of queue.spare.
const maxSpare = 64

// entry is a site with the key and turn that it had when it was pushed.
type entry struct {
	key  int64
	turn uint64
	*site
}

func newQueue() *queue {
	return &queue{bound: math.MinInt64, buckets: map[int64][]entry{}}
}

// live reports whether e is the current entry of its site, not an old one.
func (q *queue) live(e entry) bool { return e.in == q && e.site.turn == e.turn }

// push adds a site that is in no queue. No old entry of the site may have the same turn.
func (q *queue) push(s *site) {
	if q.held >= 2*q.n+64 {
		q.sweep()
	}
	q.n++
	s.in = q
	q.add(entry{s.key, s.turn, s})
}

// take removes s. Its entry stays behind as an old one.
func (q *queue) take(s *site) {
	s.in = nil
	q.n--
}

// first returns the site with the lowest key without removing it. It returns nil if the queue is
// empty.
func (q *queue) first() *site {
	for {
		for len(q.soon) > 0 {
			if q.live(q.soon[0]) {
				return q.soon[0].site
			}
			q.drop()
		}
		if len(q.order) == 0 {
			return nil
		}
		b := q.order[0]
		popHeap(&q.order, numbers)
		q.recycle(q.soon)
		q.soon = q.buckets[b]
		delete(q.buckets, b)
		q.bound = math.MaxInt64
		if b < math.MaxInt64>>bucketBits {
			q.bound = (b + 1) << bucketBits
		}
		q.held -= len(q.soon)
		q.soon = slices.DeleteFunc(q.soon, func(e entry) bool { return !q.live(e) })
		q.held += len(q.soon)
		makeHeap(q.soon, entries)
	}
}

// pop removes and returns the first site. The queue must not be empty.
func (q *queue) pop() *site {
	s := q.first()
	q.drop()
	q.take(s)
	return s
}

// drop removes the first entry of soon.
func (q *queue) drop() {
	popHeap(&q.soon, entries)
	q.held--
}

// add puts e into soon or into its bucket.
func (q *queue) add(e entry) {
	q.held++
	if e.key < q.bound {
		pushHeap(&q.soon, e, entries)
		return
	}
	b := e.key >> bucketBits
	list, ok := q.buckets[b]
	if !ok {
		pushHeap(&q.order, b, numbers)
		if n := len(q.spare); n > 0 {
			list, q.spare = q.spare[n-1], q.spare[:n-1]
		}
	}
	q.buckets[b] = append(list, e)
}

// recycle keeps the memory of an emptied bucket for reuse, unless it is large.
func (q *queue) recycle(list []entry) {
	if c := cap(list); c > 0 && c <= 4096 && len(q.spare) < maxSpare {
		q.spare = append(q.spare, list[:0])
	}
}

// sweep removes all old entries by building a new calendar.
func (q *queue) sweep() {
	old := *q // the sites still point to q
	*q = *newQueue()
	q.n = old.n
	keep := func(list []entry) {
		for _, e := range list {
			if q.live(e) {
				q.add(e)
			}
		}
	}
	keep(old.soon)
	for _, list := range old.buckets {
		keep(list)
	}
}

// entries orders entries by key, then by turn.
func entries(a, b entry) bool {
	if a.key != b.key {
		return a.key < b.key
	}
	return a.turn < b.turn
}

func numbers(a, b int64) bool { return a < b }
