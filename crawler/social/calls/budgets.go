package calls

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/echo-node/echo-node/crawler/budget"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// Prefixes of the store's Meta rows: for a snapshot of a Book, and for the intent of a call.
const (
	bookRow = "api.book/"
	callRow = "api.call/"
)

// snapEvery is the number of calls after which a Book is written whole and the earlier intents are
// deleted.
const snapEvery = 64

// Budgets are this peer's rate budgets at the servers that it asks: one budget.Book for each site,
// in the store. The intent of a call is durable before the call is sent. So a call that a crash
// interrupts counts as made (I7). The budgets belong to this peer and stay here when a slice moves
// to another peer. Safe for concurrent use.
type Budgets struct {
	store *db.Store
	o     budget.Options
	now   func() time.Time

	mu    sync.Mutex
	sites map[partition.Site]*Budget
}

// NewBudgets opens the rate budgets of a peer. The budget of a site is read when the site is first
// asked.
func NewBudgets(s *db.Store, o budget.Options, now func() time.Time) (*Budgets, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Budgets{store: s, o: o, now: now, sites: map[partition.Site]*Budget{}}, nil
}

// Budget is the rate budget of one site. Safe for concurrent use.
type Budget struct {
	b     *Budgets
	Site  partition.Site
	table string
	Names []string         // of the credentials
	daily map[string]int64 // millionths of a US dollar that a credential may spend in a UTC day
	paid  map[string]*budget.Paid

	mu      sync.Mutex
	book    *budget.Book
	intents []string         // rows of calls that the stored snapshot does not include
	limits  map[string]int64 // limits of the buckets, as the last answer left them

	share  map[string]float64       // the part of each limit that rounds may use now
	shared time.Time                // when share was last increased
	wide   map[string]time.Duration // the longest window seen of each limit

	classes map[string]budget.Class
}

// maxBudgets is how many sites Budgets holds in memory. All other sites are only in the store.
const maxBudgets = 4096

// Of returns the rate budget of a site, with the table of that service, for the credentials of
// those names. The only name "" means no credential. daily is what each credential may spend in a
// UTC day.
func (b *Budgets) Of(site partition.Site, service string, names []string, daily map[string]int64) (*Budget, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.sites[site]
	if p != nil && p.table == service {
		return p, nil
	}
	if p == nil && len(b.sites) >= maxBudgets {
		if err := b.forget(); err != nil {
			return nil, err
		}
	}
	if p != nil { // another table: the use counted so far is kept for buckets that both tables have
		if err := p.save(); err != nil {
			return nil, err
		}
	}
	p = &Budget{b: b, Site: site, table: service, Names: names, daily: daily, paid: map[string]*budget.Paid{}}
	if err := p.open(); err != nil {
		return nil, err
	}
	b.sites[site] = p
	return p, nil
}

// forget saves half of the rate budgets and removes them from memory.
func (b *Budgets) forget() error {
	for site, p := range b.sites {
		if len(b.sites) <= maxBudgets/2 {
			break
		}
		if err := p.save(); err != nil {
			return err
		}
		delete(b.sites, site)
	}
	return nil
}

// Close saves all budgets.
func (b *Budgets) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.sites {
		if err := p.save(); err != nil {
			return err
		}
	}
	return nil
}

// Status returns the state of the budgets used since the start, in order of site.
func (b *Budgets) Status() []budget.Status {
	b.mu.Lock()
	all := make([]*Budget, 0, len(b.sites))
	for _, p := range b.sites {
		all = append(all, p)
	}
	b.mu.Unlock()
	out := make([]budget.Status, 0, len(all))
	for _, p := range all {
		p.mu.Lock()
		out = append(out, p.book.Status(b.now()))
		p.mu.Unlock()
	}
	slices.SortFunc(out, func(x, y budget.Status) int { return strings.Compare(x.Site, y.Site) })
	return out
}

// row returns the name of a row of the rate budget. It has a hash, as the names of site and
// credential may be too long.
func (p *Budget) row(head, credential string) string {
	sum := sha256.Sum256([]byte(string(p.Site) + "\x00" + credential))
	return head + hex.EncodeToString(sum[:16])
}

// call returns the name of the row with the intent of a call.
func (p *Budget) call(id uint64) string { return fmt.Sprintf("%s/%016x", p.row(callRow, ""), id) }

// ledgers returns the names of the parts of the Book. Each part has its own snapshot.
func (p *Budget) ledgers() []string { return append([]string{budget.AddressOf}, p.Names...) }

// open restores the Book from the store: its snapshots and the intents written after them.
func (p *Budget) open() error {
	now := p.b.now()
	table, ok := budget.Default(p.table)
	if !ok {
		return fmt.Errorf("social: budget of %s: no table %q", p.Site, p.table)
	}
	p.classes = map[string]budget.Class{}
	for _, c := range table.Classes {
		p.classes[c.Name] = c
	}
	var err error
	if p.book, err = budget.New(string(p.Site), p.b.o); err != nil {
		return err
	}
	for _, name := range p.Names {
		if err := p.book.Add(name, priced(table, p.daily[name]), now); err != nil {
			return err
		}
	}
	var intents [][]byte
	err = p.b.store.Metas(p.row(callRow, "")+"/", func(name string, v []byte) error {
		p.intents, intents = append(p.intents, name), append(intents, v)
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range p.ledgers() {
		snap, err := p.b.store.Meta(p.row(bookRow, name))
		if err != nil && !errors.Is(err, store.ErrNotExist) {
			return err
		}
		if err := p.book.Restore(name, snap, intents, now); err != nil {
			return fmt.Errorf("social: %w", err)
		}
	}
	return p.saveLocked()
}

// priced returns a table in which each bucket of money has the limit daily.
func priced(t budget.Table, daily int64) budget.Table {
	t.Buckets = slices.Clone(t.Buckets)
	for i, s := range t.Buckets {
		if s.Unit == budget.Micro {
			t.Buckets[i].Limit = daily
		}
	}
	return t
}

func (p *Budget) save() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.saveLocked()
}

// saveLocked writes the Book whole and deletes the intents that the snapshot includes.
func (p *Budget) saveLocked() error {
	rows := map[string][]byte{}
	for _, name := range p.ledgers() {
		snap, err := p.book.Snapshot(name)
		if err != nil {
			return err
		}
		rows[p.row(bookRow, name)] = snap
	}
	for _, name := range p.intents {
		rows[name] = nil
	}
	if err := p.b.store.SetMetas(rows); err != nil {
		return err
	}
	p.intents = nil
	return nil
}

// Charge says what a call costs.
type Charge struct {
	Class string
	Items int64 // the most things that the answer may have, where things are counted
	Kind  string
	// Had returns the ids of the things in an answer. ok is false when they cannot be read. A nil
	// Had means that things are not counted.
	Had func(body []byte) (ids []string, ok bool)
	// Closes says that the server answers too many calls with status 403.
	Closes bool
	Person bool   // the server refuses tokens of applications for this call, also valid ones
	Only   string // the name of the credential that the call must carry; "" = any
}

// ClassRead is the class of most calls. It includes look-ups where these have no class of their
// own.
const ClassRead = "read"

// reserve takes one call out of the budget and makes this durable. If there is no room, the error
// is a *budget.WaitError with the time when there is.
func (p *Budget) reserve(c Charge) (budget.Ticket, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.book.Reserve(p.b.now(), c.Class, budget.Ask{Items: c.Items, Only: c.Only})
	if err != nil {
		return t, err
	}
	row := p.call(t.ID)
	if err := p.b.store.SetMeta(row, t.Append(nil)); err != nil {
		return t, &StoreError{err}
	}
	p.intents = append(p.intents, row)
	return t, nil
}

// Room returns when a call of that class may be made at a site. It returns the zero time if that is
// now, or unknown.
func (b *Budgets) Room(site partition.Site, class string) time.Time {
	b.mu.Lock()
	p := b.sites[site]
	b.mu.Unlock()
	if p == nil {
		return time.Time{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w, err := p.book.Next(b.now(), class, budget.Ask{Items: 1})
	// nothing delays the call: w.At is the time of the Book, which may be later than the caller's
	// time
	if err != nil || w.Bucket == "" {
		return time.Time{}
	}
	return w.At
}

// settle records the result of a call. ids are the things received; those that were paid for
// already today are not charged again.
func (p *Budget) settle(t budget.Ticket, a budget.Answer, kind string, ids []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(ids) > 0 {
		paid := p.paid[t.Credential]
		if paid == nil {
			paid = &budget.Paid{}
			p.paid[t.Credential] = paid
		}
		a.Paid = paid.Count(t.At, kind, ids)
		for _, id := range ids {
			paid.Add(t.At, kind, id)
		}
	}
	if err := p.book.Settle(p.b.now(), t, a); err != nil && !errors.Is(err, budget.ErrTicket) {
		return err
	}
	taught := p.teach()
	if len(p.intents) < snapEvery && a.Status != http.StatusTooManyRequests && !taught {
		return nil
	}
	if err := p.saveLocked(); err != nil {
		return &StoreError{err}
	}
	return nil
}

// teach reports whether the limits have changed since the last call. If so the Book is saved, so
// that a crash does not lose what the answer said of them.
func (p *Budget) teach() bool {
	limits := map[string]int64{}
	for _, b := range p.book.Status(p.b.now()).Buckets {
		if b.Kind != budget.Adaptive { // the limit of an adaptive bucket changes with each call
			limits[b.Credential+" "+b.Name] = b.Limit
		}
	}
	before := p.limits
	p.limits = limits
	return !maps.Equal(before, limits)
}

// rejectedFor is how long a credential that its server rejected is not used, if there is another.
const rejectedFor = time.Hour

// reject stops the use of that credential for rejectedFor, if there are others. It reports whether
// there are. accept ends this.
func (p *Budget) reject(credential string) (others bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.book.Avoid(credential, p.b.now().Add(rejectedFor))
}

// accept allows the use of a credential again.
func (p *Budget) accept(credential string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.book.Avoid(credential, time.Time{})
}

// Ask makes one call with send. send gets the name of the credential to use.
func (p *Budget) Ask(ctx context.Context, c Charge,
	send func(credential string) (*fetch.Response, error)) (*fetch.Response, error) {
	t, err := p.reserve(c)
	if err != nil {
		return nil, err
	}
	resp, err := send(t.Credential)
	a := budget.Answer{}
	var ids []string
	switch {
	case err == nil:
		a.Status, a.Header, a.Refused = resp.Status, resp.Header, c.Closes && resp.Status == http.StatusForbidden
		if c.Had != nil && resp.Status < 300 {
			var ok bool
			if ids, ok = c.Had(resp.Body); ok {
				a.Items = int64(len(ids))
			} else { // unreadable: count the most that it may have had
				a.Items, ids = c.Items, nil
			}
		}
	case resp == nil && notSent(err):
		a.NotSent = true
	}
	return resp, errors.Join(err, p.settle(t, a, c.Kind, ids))
}

// notSent reports whether an error of fetch.Client.Get means that nothing reached the server.
func notSent(err error) bool {
	var busy *fetch.BusyError
	var gate *GateError
	return errors.As(err, &busy) || errors.As(err, &gate) || errors.Is(err, fetch.ErrPrivate) ||
		errors.Is(err, fetch.ErrContact) ||
		errors.Is(err, fetch.ErrPort) || fetch.Stop(err) == "dns"
}
