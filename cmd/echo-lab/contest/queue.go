package contest

// queue is a binary heap of items by the time when they are due. It uses plain slices, so that
// a million items cost 12 bytes each.
type queue struct {
	at   []int64
	item []int32
}

func (q *queue) len() int { return len(q.at) }

func (q *queue) push(at int64, item int32) {
	q.at, q.item = append(q.at, at), append(q.item, item)
	for i := len(q.at) - 1; i > 0; {
		up := (i - 1) / 2
		if q.at[up] <= q.at[i] {
			return
		}
		q.swap(i, up)
		i = up
	}
}

func (q *queue) pop() (at int64, item int32) {
	at, item = q.at[0], q.item[0]
	last := len(q.at) - 1
	q.swap(0, last)
	q.at, q.item = q.at[:last], q.item[:last]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if q.at[c] < q.at[least] {
				least = c
			}
		}
		if least == i {
			return at, item
		}
		q.swap(i, least)
		i = least
	}
}

func (q *queue) swap(i, j int) {
	q.at[i], q.at[j] = q.at[j], q.at[i]
	q.item[i], q.item[j] = q.item[j], q.item[i]
}
