package social

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
	"github.com/echo-node/echo-node/store"
)

// Tokens that a server rejects. A Key that is refused for want of a good token waits for a day, and its state says by
// which tokens it was refused (state.Barred), as a sum with a salt that never leaves this peer. As soon as this peer
// has its slice and other tokens for its site, it is asked again.

// saltRow is the name of the row with that salt.
const saltRow = "api.salt"

const saltBytes = 16

// sitesRow is the name of the row with the sites that this peer has, or had, tokens for, as JSON.
const sitesRow = "api.tokens"

// maxTokenSites is how many of them are kept beside those that there are tokens for now.
const maxTokenSites = 4096

// tokenSites are the sites that there are tokens for, or were: what waited at one of these for another token is asked
// again also when its only one was taken away.
func (s *Source) tokenSites() error {
	b, err := s.o.Store.Meta(sitesRow)
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		return err
	}
	var had []partition.Site
	if err == nil && strictjson.Unmarshal(b, &had) != nil {
		s.o.Logger.Warn("which sites there were tokens for is not known any more")
	}
	s.sites = append(slices.Collect(maps.Keys(s.tokens)), had[:min(len(had), maxTokenSites)]...)
	slices.Sort(s.sites)
	if s.sites = slices.Compact(s.sites); slices.Equal(s.sites, had) {
		return nil
	}
	if b, err = json.Marshal(s.sites); err != nil {
		return err // strings are JSON
	}
	return s.o.Store.SetMeta(sitesRow, b)
}

// salted reads the salt, or makes it the first time that there are tokens.
func (s *Source) salted() error {
	if err := s.tokenSites(); err != nil || len(s.sites) == 0 {
		return err
	}
	b, err := s.o.Store.Meta(saltRow)
	if err == nil && len(b) == saltBytes {
		s.salt = b
		return nil
	}
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		return err
	}
	s.salt = make([]byte, saltBytes)
	_, _ = rand.Read(s.salt) // never fails
	return s.o.Store.SetMeta(saltRow, s.salt)
}

// sum stands for the tokens that there are for a site, "" = none.
func (s *Source) sum(site partition.Site) string {
	var all []string
	for _, c := range s.tokens[site] {
		all = append(all, c.Sum(s.salt))
	}
	slices.Sort(all)
	return strings.Join(all, "+")
}

// Rejected is a token that its server does not accept.
type Rejected struct {
	Site       partition.Site
	Credential string // its name
	Since      time.Time
	Said       string // by the server, in one line
}

// rejections are the tokens that were rejected and not accepted since. There are as many as tokens at most. Safe for
// concurrent use.
type rejections struct {
	mu  sync.Mutex
	all []Rejected
}

func (r *rejections) index(site partition.Site, name string) int {
	return slices.IndexFunc(r.all, func(x Rejected) bool { return x.Site == site && x.Credential == name })
}

// add notes a rejection, and says whether it is the first.
func (r *rejections) add(x Rejected) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := r.index(x.Site, x.Credential); i >= 0 {
		r.all[i].Said = x.Said
		return false
	}
	r.all = append(r.all, x)
	return true
}

// accepted forgets a rejection, and says whether there was one.
func (r *rejections) accepted(site partition.Site, name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.index(site, name)
	if i >= 0 {
		r.all = slices.Delete(r.all, i, i+1)
	}
	return i >= 0
}

// Rejected are the tokens that their servers rejected when they were used last, in order of site and name.
func (s *Source) Rejected() []Rejected {
	s.rejected.mu.Lock()
	defer s.rejected.mu.Unlock()
	out := slices.Clone(s.rejected.all)
	slices.SortFunc(out, func(a, b Rejected) int {
		return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(a.Credential, b.Credential))
	})
	return out
}

// noToken is state.Barred where there was none.
const noToken = "none"

// barred notes that the Key waits for another token, when that is what f says.
func (v *visit) barred(f *service.Fault) {
	if f == nil || f.Word != service.NeedsToken && f.Word != service.Closed {
		return
	}
	site := v.t.Due.Key.Site()
	if v.st.Barred = v.s.sum(site); v.st.Barred == "" {
		v.st.Barred = noToken
	}
	rejects := f.Word == service.NeedsToken || f.Code == "client-forbidden" || f.Code == "unsupported-authentication"
	if !rejects || f.Status == 0 || !v.s.tokens[v.asked][v.used].Set() {
		return
	}
	v.reject(v.asked, f.Said)
}

// reject notes that the token of the last call is not accepted.
func (v *visit) reject(site partition.Site, said string) {
	x := Rejected{Site: site, Credential: v.used, Since: v.now, Said: said}
	if v.s.rejected.add(x) {
		v.s.o.Logger.Warn("a token is rejected", "site", x.Site, "token", x.Credential, "said", x.Said)
	}
}

// wakePage is how many rows of a site are looked at in one reading.
const wakePage = 1000

// wake has those Keys visited now that waited for another token than there is now, in each slice that comes, until ctx
// ends.
func (s *Source) wake(ctx context.Context, o StreamOptions) error {
	if len(s.sites) == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	here := map[partition.Slice]bool{}
	tick := time.NewTicker(maintainEvery)
	defer tick.Stop()
	for {
		var err error
		here, err = came(o.Slices(), here, func(sl partition.Slice) error {
			for _, site := range s.sites {
				if err := s.wakeIn(sl, site, o); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// wakeIn is wake for a site in a slice.
func (s *Source) wakeIn(sl partition.Slice, site partition.Site, o StreamOptions) error {
	now, sum := s.o.Now(), s.sum(site)
	if sum == "" {
		sum = noToken
	}
	for from, more := []byte(nil), true; more; more = from != nil {
		rows, next, err := s.o.Store.PendingOf(sl, site, from, wakePage)
		if err != nil {
			return err
		}
		var keys []partition.Key
		for _, d := range rows {
			if d.State != store.StateDone || !d.At.After(now) || !refusedToken(d.Reason) {
				continue
			}
			b, err := s.o.Store.Checkpoint(sl, d.Key)
			if err != nil && !errors.Is(err, store.ErrNotExist) {
				return err
			}
			if st, err := decodeState(b); err != nil || st.Barred != sum { // "": written before states said it
				keys = append(keys, d.Key)
			}
		}
		if err := o.Reschedule(sl, keys); err != nil {
			return err
		}
		from = next
	}
	return nil
}

// refusedToken says of a row's reason that the Key may have been refused for want of a good token.
func refusedToken(reason string) bool {
	return strings.Contains(reason, string(service.NeedsToken)) || strings.Contains(reason, string(service.Closed))
}
