package social

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/echo-node/echo-node/crawler/budget"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Many accounts in one call. A service looks up as many as api.most with one call, and each fetch is of one
// Key. So who is looked up brings those along whose own visits are due, too, and would begin with that
// look-up; their visits find the answer here. It is a memory of minutes and no state: a crash costs a call for so many
// accounts, and each visit still commits what is its own.
const (
	aheadTime  = 15 * time.Minute // for which an answer serves
	aheadMost  = 4096             // answers in memory
	aheadNever = 6 * time.Hour    // a server that refuses to look up several is not asked to for so long
)

// found is what a look-up said of an account.
type found struct {
	at time.Time
	// of the service's client; nil = the look-up of several had nothing, which only one for it alone can explain
	profile any
	crowd   bool // more wait than one call looks up
}

// ahead is what was looked up of late. Safe for concurrent use. The zero value is empty.
type ahead struct {
	mu    sync.Mutex
	by    map[partition.Key]found
	never map[partition.Site]time.Time
}

// get is what was found of k since then.
func (a *ahead) get(k partition.Key, since, now time.Time) (found, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f, ok := a.by[k]
	return f, ok && f.at.After(since) && now.Sub(f.at) < aheadTime
}

func (a *ahead) put(k partition.Key, f found) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.by == nil {
		a.by = map[partition.Key]found{}
	}
	if len(a.by) >= aheadMost {
		maps.DeleteFunc(a.by, func(_ partition.Key, old found) bool { return f.at.Sub(old.at) >= aheadTime })
	}
	if len(a.by) >= aheadMost {
		clear(a.by) // what is forgotten is asked for again
	}
	a.by[k] = f
}

// refuses notes that a site does not look up several, and says whether that was so of late.
func (a *ahead) refuses(s partition.Site, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.never == nil || len(a.never) >= aheadMost {
		a.never = map[partition.Site]time.Time{}
	}
	a.never[s] = now
}

func (a *ahead) refused(s partition.Site, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, ok := a.never[s]
	return ok && now.Sub(at) < aheadNever
}

// subject is whom a Key is about as it is looked up: its account, or itself where that is to be found out.
func subject(k partition.Key) partition.Key {
	if k.Kind() == partition.KindName {
		return k
	}
	return k.Account()
}

// looked returns what a look-up of several accounts found about the account of this visit. The look-up was made
// earlier for another account, or it is made now, if other accounts are due. ok is false if there is no such look-up:
// the account may be asked for alone.
func (v *visit) looked(ctx context.Context) (f found, ok bool, err error) {
	k, site := subject(v.t.Due.Key), v.t.Due.Key.Site()
	if f, ok = v.s.ahead.get(k, v.st.Looked, v.now); ok {
		return f, true, nil
	}
	most := v.api.most()
	own := v.api.called(v.t.Due.Key, &v.st)
	if most < 2 || own == "" || v.t.Others == nil || v.s.ahead.refused(site, v.now) {
		return found{}, false, nil
	}
	names, keys := []string{own}, []partition.Key{k}
	if err := v.others(most, &names, &keys); err != nil {
		return found{}, false, &storeError{err}
	}
	if len(names) < 2 {
		return found{}, false, nil
	}
	all, err := v.api.look(ctx, names)
	var wait *budget.WaitError
	switch word := service.WordOf(err); {
	case err == nil:
	case errors.As(err, &wait): // there may be room for one
		return found{}, false, nil
	case word == service.Unsupported, word == service.Refused, word == service.Misshapen, word == service.NotJSON,
		word == service.Gone, word == service.Closed:
		v.s.o.Logger.Info("looks up one account at a time", "site", site, "err", err)
		v.s.ahead.refuses(site, v.now)
		return found{}, false, nil
	default:
		return found{}, false, err
	}
	for i, name := range names {
		v.s.ahead.put(keys[i], found{v.now, all[name], len(names) == most})
	}
	return found{v.now, all[own], len(names) == most}, true, nil
}

// others adds to names and keys those that are due and would be looked up, too, until there are so many.
func (v *visit) others(most int, names *[]string, keys *[]partition.Key) error {
	have := map[partition.Key]bool{(*keys)[0]: true}
	named := v.t.Due.Key.Kind() == partition.KindName
	return v.t.Others(func(d store.Due, sl partition.Slice) (bool, error) {
		k := subject(d.Key)
		if k == "" || have[k] || named != (d.Key.Kind() == partition.KindName) {
			return true, nil
		}
		b, err := v.s.o.Store.Checkpoint(sl, d.Key)
		if err != nil {
			return false, err
		}
		st, err := decodeState(b)
		if err != nil { // its visit begins anew
			return true, nil
		}
		if _, had := v.s.ahead.get(k, st.Looked, v.now); had || !v.looks(d.Key, &st) {
			return true, nil
		}
		if name := v.api.called(d.Key, &st); name != "" {
			have[k] = true
			*names, *keys = append(*names, name), append(*keys, k)
		}
		return len(*names) < most, nil
	})
}
