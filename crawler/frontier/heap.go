package frontier

// arity is the number of children of a heap node. Four children give half the levels of a binary
// heap. container/heap would box each element in an interface.
const arity = 4

// pushHeap adds v to the heap h.
func pushHeap[T any](h *[]T, v T, less func(a, b T) bool) {
	*h = append(*h, v)
	for i := len(*h) - 1; i > 0; {
		parent := (i - 1) / arity
		if !less((*h)[i], (*h)[parent]) {
			return
		}
		(*h)[i], (*h)[parent] = (*h)[parent], (*h)[i]
		i = parent
	}
}

// popHeap removes the first element of a heap that is not empty.
func popHeap[T any](h *[]T, less func(a, b T) bool) {
	var zero T
	last := len(*h) - 1
	(*h)[0], (*h)[last] = (*h)[last], zero
	*h = (*h)[:last]
	down(*h, 0, less)
}

// makeHeap turns h into a heap.
func makeHeap[T any](h []T, less func(a, b T) bool) {
	for i := (len(h) - 2) / arity; i >= 0; i-- {
		down(h, i, less)
	}
}

// down moves element i down until no child is less than it.
func down[T any](h []T, i int, less func(a, b T) bool) {
	for {
		least := i
		first := arity*i + 1
		for child := first; child < min(first+arity, len(h)); child++ {
			if less(h[child], h[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
