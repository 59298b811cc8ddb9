package temporal

import "container/heap"

// Priority is the paper's order of links: floor(100 / (count + 1)), 0 first and 100 last. count
// is how often valid segments have contained the link so far. A frontier has to update a link
// whenever its count rises (Queue.Put does). Otherwise the order stays as at first sight.
func Priority(count int) int { return 100 / (max(count, 0) + 1) }

// Queue is an order of links that can be updated. The highest score comes first, and of equal
// scores the earliest link. It does not matter how often a link was put.
type Queue struct {
	items queueItems
	at    map[string]*queued
	next  int
}

type queued struct {
	key   string
	score float64
	born  int // order of arrival
	index int
}

// NewQueue returns an empty Queue.
func NewQueue() *Queue { return &Queue{at: make(map[string]*queued)} }

// Put adds key, or moves it according to its new score.
func (q *Queue) Put(key string, score float64) {
	if item := q.at[key]; item != nil {
		item.score = score
		heap.Fix(&q.items, item.index)
		return
	}
	item := &queued{key: key, score: score, born: q.next}
	q.next++
	q.at[key] = item
	heap.Push(&q.items, item)
}

// Pop takes the best key; ok is false when there is none.
func (q *Queue) Pop() (key string, score float64, ok bool) {
	if len(q.items) == 0 {
		return "", 0, false
	}
	item := heap.Pop(&q.items).(*queued)
	delete(q.at, item.key)
	return item.key, item.score, true
}

// Len returns how many keys wait.
func (q *Queue) Len() int { return len(q.items) }

type queueItems []*queued

func (q queueItems) Len() int { return len(q) }

func (q queueItems) Less(i, j int) bool {
	if q[i].score != q[j].score {
		return q[i].score > q[j].score
	}
	return q[i].born < q[j].born
}

func (q queueItems) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push is for container/heap.
func (q *queueItems) Push(x any) {
	item := x.(*queued)
	item.index = len(*q)
	*q = append(*q, item)
}

// Pop is for container/heap.
func (q *queueItems) Pop() any {
	old := *q
	item := old[len(old)-1]
	*q = old[:len(old)-1]
	return item
}

// Best takes the key with the highest present score from q. score returns each key's present
// score. A key whose score has fallen goes back to its new position. So a queue need not be
// sorted again whenever a learner learns.
func Best(q *Queue, score func(key string) float64) (key string, ok bool) {
	for {
		key, before, ok := q.Pop()
		if !ok {
			return "", false
		}
		now := score(key)
		if now >= before-fallen || q.Len() == 0 || now >= q.items[0].score {
			return key, true
		}
		q.Put(key, now)
	}
}

// fallen is how much a score may fall and still count as the same.
const fallen = 1e-3
