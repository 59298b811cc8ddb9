package social

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/echo-node/echo-node/crawler/budget"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/crawler/social/calls"
	"github.com/echo-node/echo-node/crawler/social/fold"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Many accounts in one call. A service looks up as many accounts as API.Most with one call, but
// each fetch has one Key. So a look-up includes other accounts whose visits are due and would begin
// with a look-up. Their visits find the answer here. It is kept in memory for minutes only. A crash
// costs one call for so many accounts, and each visit still commits its own account.
const (
	aheadTime = 15 * time.Minute // an answer can be used for this long
	aheadMost = 4096             // answers in memory
	// a server that refuses to look up several accounts is not asked to for this long
	aheadNever = 6 * time.Hour
)

// found is the result of a look-up for an account.
type found struct {
	at time.Time
	// of the type of the service's client; nil = a look-up of several accounts did not return it,
	// and only a look-up of it alone can say why
	profile any
	crowd   bool // more accounts wait than one call looks up
}

// ahead has the results of recent look-ups. Safe for concurrent use. The zero value is empty.
type ahead struct {
	mu    sync.Mutex
	by    map[partition.Key]found
	never map[partition.Site]time.Time
}

// get returns the result for k, if it is later than since and not too old.
func (a *ahead) get(k partition.Key, since, now time.Time) (found, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f, ok := a.by[k]
	return f, ok && f.at.After(since) && now.Sub(f.at) < aheadTime
}

// put stores a result. If there are too many, it first removes old results, and if need be all.
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

// refuses notes that a site does not look up several accounts. refused reports whether that was so
// recently.
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

// lookUp looks up the account of a Key, together with others if the service can do that.
type lookUp struct {
	*parts
	b   *fold.Batch
	api account.API
	t   fetch.Task
	key partition.Key
	now time.Time
}

// looked returns what a look-up of several accounts found about the account of this visit. The
// look-up was made earlier for another account, or it is made now, if other accounts are due. ok is
// false if there is no such look-up: the account may be asked for alone.
func (l *lookUp) looked(ctx context.Context) (f found, ok bool, err error) {
	k, site := account.Subject(l.key), l.key.Site()
	if f, ok = l.ahead.get(k, l.b.State.Looked, l.now); ok {
		return f, true, nil
	}
	most := l.api.Most()
	own := l.api.Called(l.key, &l.b.State)
	if most < 2 || own == "" || l.t.Others == nil || l.ahead.refused(site, l.now) {
		return found{}, false, nil
	}
	names, keys := []string{own}, []partition.Key{k}
	if err := l.others(most, &names, &keys); err != nil {
		return found{}, false, &calls.StoreError{Err: err}
	}
	if len(names) < 2 {
		return found{}, false, nil
	}
	all, err := l.api.Look(ctx, names)
	if l.key.Kind() == partition.KindName { // the accounts found are visited next
		for _, p := range all {
			l.putNamed(p)
		}
	}
	var wait *budget.WaitError
	switch word := service.WordOf(err); {
	case err == nil:
	case errors.As(err, &wait): // there may be room for a look-up of one
		return found{}, false, nil
	case word == service.Unsupported, word == service.Refused, word == service.Misshapen, word == service.NotJSON,
		word == service.Gone, word == service.Closed:
		l.o.Logger.Info("looks up one account at a time", "site", site, "err", err)
		l.ahead.refuses(site, l.now)
		return found{}, false, nil
	default:
		return found{}, false, err
	}
	for i, name := range names {
		l.ahead.put(keys[i], found{l.now, all[name], len(names) == most})
	}
	return found{l.now, all[own], len(names) == most}, true, nil
}

// others adds to names and keys other accounts that are due and would be looked up, until there are
// most of them.
func (l *lookUp) others(most int, names *[]string, keys *[]partition.Key) error {
	have := map[partition.Key]bool{(*keys)[0]: true}
	named := l.key.Kind() == partition.KindName
	return l.t.Others(func(d store.Due, sl partition.Slice) (bool, error) {
		k := account.Subject(d.Key)
		if k == "" || have[k] || named != (d.Key.Kind() == partition.KindName) {
			return true, nil
		}
		b, err := l.o.Store.Accounts.Checkpoint(sl, d.Key)
		if err != nil {
			return false, err
		}
		st, err := account.DecodeState(b)
		if err != nil { // its visit starts from an empty state
			return true, nil
		}
		_, had := l.ahead.get(k, st.Looked, l.now)
		if had || !st.Looks(d.Key, l.now, l.o.Profile, l.api.Counts(st.Claimed)) {
			return true, nil
		}
		if name := l.api.Called(d.Key, &st); name != "" {
			have[k] = true
			*names, *keys = append(*names, name), append(*keys, k)
		}
		return len(*names) < most, nil
	})
}

// putNamed keeps the profile of an account whose name was looked up, under the Key of the account.
func (l *lookUp) putNamed(profile any) {
	if p, ok := profile.(account.Keyed); ok {
		if k, err := p.Key(); err == nil {
			l.ahead.put(k, found{at: l.now, profile: profile})
		}
	}
}
