package calls

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// saltRow is the name of the row with the salt of token sums.
const saltRow = "api.salt"

const saltBytes = 16

// sitesRow is the name of the row with the sites that this peer has or had tokens for, as JSON.
const sitesRow = "api.tokens"

// maxTokenSites is how many sites of the stored list are kept, beside the sites that have tokens
// now.
const maxTokenSites = 4096

// Tokens are the credentials of this peer's operator, by site and name. A Key that is refused
// because no token is valid for it waits for a day. Its state has a sum of the refused tokens, with
// a salt that never leaves this peer. When this peer has the slice of the Key and other tokens for
// its site, the Key is visited at once. Safe for concurrent use after Open.
type Tokens struct {
	store    *db.Store
	log      *slog.Logger
	by       map[partition.Site]map[string]service.Credential
	daily    map[partition.Site]map[string]int64
	sites    []partition.Site // that have or had tokens
	salt     []byte           // for the sums of tokens
	rejected rejections
}

// NewTokens returns Tokens without any token.
func NewTokens(s *db.Store, log *slog.Logger) *Tokens {
	return &Tokens{store: s, log: log, by: map[partition.Site]map[string]service.Credential{},
		daily: map[partition.Site]map[string]int64{}}
}

// Add adds a token for a site. The token may spend daily millionths of a US dollar in a UTC day
// there; 0 where calls are free. Not to be called after Open.
func (t *Tokens) Add(at partition.Site, c service.Credential, daily int64) {
	if t.by[at] == nil {
		t.by[at], t.daily[at] = map[string]service.Credential{}, map[string]int64{}
	}
	t.by[at][c.Name()], t.daily[at][c.Name()] = c, daily
}

// Open reads the salt and the list of sites from the store. Its errors are those of the store.
func (t *Tokens) Open() error { return t.salted() }

// At returns the credentials for a site by name. The caller must not change the map.
func (t *Tokens) At(site partition.Site) map[string]service.Credential { return t.by[site] }

// Daily returns what each credential may spend in a UTC day, in millionths of a US dollar. The
// caller must not change the map.
func (t *Tokens) Daily(site partition.Site) map[string]int64 { return t.daily[site] }

// Sites returns the sites that have or had tokens. The caller must not change the slice.
func (t *Tokens) Sites() []partition.Site { return t.sites }

// tokenSites reads and updates the list of sites that have or had tokens. A Key that waits for
// another token is also visited again when the only token of its site was removed.
func (t *Tokens) tokenSites() error {
	b, err := t.store.Meta(sitesRow)
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		return err
	}
	var had []partition.Site
	if err == nil && strictjson.Unmarshal(b, &had) != nil {
		t.log.Warn("the list of sites with tokens cannot be read any more")
	}
	t.sites = append(slices.Collect(maps.Keys(t.by)), had[:min(len(had), maxTokenSites)]...)
	slices.Sort(t.sites)
	if t.sites = slices.Compact(t.sites); slices.Equal(t.sites, had) {
		return nil
	}
	if b, err = json.Marshal(t.sites); err != nil {
		return err // not reached: strings can always be encoded
	}
	return t.store.SetMeta(sitesRow, b)
}

// salted reads the salt, or creates it when there are tokens for the first time.
func (t *Tokens) salted() error {
	if err := t.tokenSites(); err != nil || len(t.sites) == 0 {
		return err
	}
	b, err := t.store.Meta(saltRow)
	if err == nil && len(b) == saltBytes {
		t.salt = b
		return nil
	}
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		return err
	}
	t.salt = make([]byte, saltBytes)
	_, _ = rand.Read(t.salt) // never fails
	return t.store.SetMeta(saltRow, t.salt)
}

// Sum returns a salted sum of the tokens for a site, "" if there are none.
func (t *Tokens) Sum(site partition.Site) string {
	var all []string
	for _, c := range t.by[site] {
		all = append(all, c.Sum(t.salt))
	}
	slices.Sort(all)
	return strings.Join(all, "+")
}

// Rejected is a token that its server does not accept.
type Rejected struct {
	Site       partition.Site
	Credential string // the name of the credential
	Since      time.Time
	Said       string // the server's answer, in one line
}

// rejections are the tokens that were rejected and not accepted since, at most one entry for each
// token. Safe for concurrent use.
type rejections struct {
	mu  sync.Mutex
	all []Rejected
}

func (r *rejections) index(site partition.Site, name string) int {
	return slices.IndexFunc(r.all, func(x Rejected) bool { return x.Site == site && x.Credential == name })
}

// add notes a rejection and reports whether it is the first of that token.
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

// accepted removes a rejection and reports whether there was one.
func (r *rejections) accepted(site partition.Site, name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.index(site, name)
	if i >= 0 {
		r.all = slices.Delete(r.all, i, i+1)
	}
	return i >= 0
}

// Rejected returns the tokens that their servers rejected at their last use, in order of site and
// name.
func (t *Tokens) Rejected() []Rejected {
	t.rejected.mu.Lock()
	defer t.rejected.mu.Unlock()
	out := slices.Clone(t.rejected.all)
	slices.SortFunc(out, func(a, b Rejected) int {
		return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(a.Credential, b.Credential))
	})
	return out
}

// NoToken is the value that a state has instead of a Sum when there is no token.
const NoToken = "none"
