package queue

import (
	"errors"
	"fmt"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Replan writes new plans for Keys in sl, as one batch. It skips a Key that was fetched, moved or
// replanned since it was read. It returns the number of plans that it wrote. After a crash, all or
// none of them are there. ErrFenced means that the slice was handed over.
func (s *Queue) Replan(sl partition.Slice, plans []store.Plan) (taken int, err error) {
	if err := s.engine.Enter(); err != nil {
		return 0, err
	}
	defer s.engine.Leave()
	if len(plans) > store.MaxPlans {
		return 0, fmt.Errorf("store: replan: %d plans, at most %d", len(plans), store.MaxPlans)
	}
	err = s.write([]partition.Slice{sl}, func(t *Batch) error {
		if err := s.engine.Fenced(sl); err != nil {
			return err
		}
		taken = 0
		done := make(map[partition.Key]bool, len(plans))
		for _, p := range plans {
			if done[p.Was.Key] || p.At.IsZero() || len(p.History) > store.MaxHistory {
				continue
			}
			done[p.Was.Key] = true
			id := s.engine.IDIn(sl, p.Was.Key)
			old, err := t.KeyState(id, p.Was.Key)
			if errors.Is(err, store.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			if old.State != store.StateDone || !old.At.Equal(p.Was.At) || old.History != string(p.Was.History) {
				continue
			}
			next := old
			next.At, next.History = p.At.UTC(), string(p.History)
			next.Fetched = old.Fetched.Add(store.Tick) // one step later: every replica takes it
			if err := t.Put(id, p.Was.Key, &old, next); err != nil {
				return err
			}
			taken++
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("store: replan: %w", err)
	}
	return taken, nil
}
