package frontier

import (
	"math"
	"slices"
)

// queue hands out sites by key, of equal keys by their turn. It is a calendar queue (Brown,
// CACM 31(10), 1988): entries lie unsorted in buckets of about 4 ms of keys, and
// only the bucket that is handed out now is a heap. So a push or a pop costs the
// same with 1,000 sites as with 200,000; a heap of all of them would miss the
// cache at each of its levels.
//
// A site that is taken out, or moved, leaves its entry behind, to be passed
// over. There are at most as many of those as sites, and 64.
//
// The zero value is not ready: newQueue.
type queue struct {
	soon    []entry           // the entries with keys below bound, a heap
	bound   int64             // entries of buckets are at or above it
	buckets map[int64][]entry // by key >> bucketBits, in no order
	order   []int64           // the numbers of the buckets, a heap
	n       int               // sites in the queue
	held    int               // entries: n and those left behind
	spare   [][]entry         // emptied buckets, to be used again
}

// bucketBits is the logarithm of a bucket's width in nanoseconds.
const bucketBits = 22

// maxSpare is how many emptied buckets are kept.
const maxSpare = 64

// entry is a site, and its key and turn when it was pushed.
type entry struct {
	key  int64
	turn uint64
	*site
}

func newQueue() *queue {
	return &queue{bound: math.MinInt64, buckets: map[int64][]entry{}}
}

// live says that the entry stands for its site.
func (q *queue) live(e entry) bool { return e.in == q && e.site.turn == e.turn }

// push puts in a site that is in no queue, with a turn that no entry left behind has.
func (q *queue) push(s *site) {
	if q.held >= 2*q.n+64 {
		q.sweep()
	}
	q.n++
	s.in = q
	q.add(entry{s.key, s.turn, s})
}

// take takes s out.
func (q *queue) take(s *site) {
	s.in = nil
	q.n--
}

// first is the site to be handed out next, nil when there is none.
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

// pop takes out the first site.
func (q *queue) pop() *site {
	s := q.first()
	q.drop()
	q.take(s)
	return s
}

// drop lets go of the first entry of soon.
func (q *queue) drop() {
	popHeap(&q.soon, entries)
	q.held--
}

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

// recycle keeps the room of an emptied bucket, unless it is a lot.
func (q *queue) recycle(list []entry) {
	if c := cap(list); c > 0 && c <= 4096 && len(q.spare) < maxSpare {
		q.spare = append(q.spare, list[:0])
	}
}

// sweep puts the live entries into a new calendar.
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

func entries(a, b entry) bool {
	if a.key != b.key {
		return a.key < b.key
	}
	return a.turn < b.turn
}

func numbers(a, b int64) bool { return a < b }
