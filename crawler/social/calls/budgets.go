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

// Names of the rows of a Budgets in the store (Meta): of a snapshot, and of the intent of a call.
const (
	bookRow = "api.book/"
	callRow = "api.call/"
)

// snapEvery is after how many calls a Book is written whole, and the intents before dropped.
const snapEvery = 64

// Budgets are this peer's budgets at the servers that it asks: a budget.Book for each
// site, kept in the store. Before a call is sent its intent is durable, so whatever a
// crash leaves open counts as made (I7). They are this peer's, and stay here when a
// slice is handed over. Safe for concurrent use.
type Budgets struct {
	store *db.Store
	o     budget.Options
	now   func() time.Time

	mu    sync.Mutex
	sites map[partition.Site]*Budget
}

// NewBudgets opens the budgets of a peer; those of a site are read when it is first asked.
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
	daily map[string]int64 // microusd that a credential may spend in a UTC day
	paid  map[string]*budget.Paid

	mu      sync.Mutex
	book    *budget.Book
	intents []string         // rows of calls that the snapshot in the store does not have
	limits  map[string]int64 // of the buckets, as the last answer left them

	share  map[string]float64       // what rounds may use now of each limit, as a part of it
	shared time.Time                // since when it grows
	wide   map[string]time.Duration // the window of each, the longest that was seen

	classes map[string]budget.Class
}

// maxBudgets is how many sites a Budgets holds in memory; what else was asked is in the store.
const maxBudgets = 4096

// Of is the rate budget of a site with the table of that service, for credentials of those
// names, "" alone for none, each of which may spend so much in a UTC day.
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
	if p != nil { // another table: what was used by the old one counts where a bucket is in both
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

// forget lets go of half of the rate budgets, which are in the store whole.
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

// Close writes what the store does not have whole.
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

// Status is the state of the budgets used since the start, in order of site.
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

// row is the name of a row of the rate budget: the site and the credential may be longer than a name.
func (p *Budget) row(head, credential string) string {
	sum := sha256.Sum256([]byte(string(p.Site) + "\x00" + credential))
	return head + hex.EncodeToString(sum[:16])
}

func (p *Budget) call(id uint64) string { return fmt.Sprintf("%s/%016x", p.row(callRow, ""), id) }

// ledgers are the parts of the Book that have a snapshot each.
func (p *Budget) ledgers() []string { return append([]string{budget.AddressOf}, p.Names...) }

// open makes the Book as the store has it.
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

// priced is a table with so much money for a UTC day, whatever it goes to.
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

// saveLocked writes the Book whole, and drops the intents that it has.
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

// Charge is what a call counts as.
type Charge struct {
	Class string
	Items int64 // things that its answer may have at most, where they are counted
	Kind  string
	// Had are the ids of the things that an answer has; ok is false when that cannot be told. nil: not counted.
	Had func(body []byte) (ids []string, ok bool)
	// Closes says that a 403 is what too many calls are answered with.
	Closes bool
	Person bool   // a token of an application is refused, however good it is
	Only   string // the name of the credential that it must carry; "" = of whichever
}

// ClassRead is what most calls count as, where a look-up counts as any other.
const ClassRead = "read"

// reserve takes one call out of the budget, durably. A *budget.WaitError
// says when there is room again.
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

// Room is when a call of that class may be made at a site, the zero time when that is now, or not known.
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
	// nothing holds it: its time is that of the Book, which may be later than the caller's
	if err != nil || w.Bucket == "" {
		return time.Time{}
	}
	return w.At
}

// settle puts back what came of a call: ids are of the things that came, of which those that were
// paid for today are not charged again.
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

// teach says whether the limits are others than at the last call: what an answer told of them is not lost by a crash.
func (p *Budget) teach() bool {
	limits := map[string]int64{}
	for _, b := range p.book.Status(p.b.now()).Buckets {
		if b.Kind != budget.Adaptive { // its pace grows with each call
			limits[b.Credential+" "+b.Name] = b.Limit
		}
	}
	before := p.limits
	p.limits = limits
	return !maps.Equal(before, limits)
}

// rejectedFor is how long a credential that its server rejected is not used, where there is another.
const rejectedFor = time.Hour

// reject has other credentials used than that one, as far as there are, and says whether there are; accept ends that.
func (p *Budget) reject(credential string) (others bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.book.Avoid(credential, p.b.now().Add(rejectedFor))
}

func (p *Budget) accept(credential string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.book.Avoid(credential, time.Time{})
}

// Ask makes one call with send, which is given the name of the credential.
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
			} else { // as much as it may have been
				a.Items, ids = c.Items, nil
			}
		}
	case resp == nil && notSent(err):
		a.NotSent = true
	}
	return resp, errors.Join(err, p.settle(t, a, c.Kind, ids))
}

// notSent says of an error of fetch.Client.Get that nothing can have reached the server.
func notSent(err error) bool {
	var busy *fetch.BusyError
	var gate *GateError
	return errors.As(err, &busy) || errors.As(err, &gate) || errors.Is(err, fetch.ErrPrivate) ||
		errors.Is(err, fetch.ErrContact) ||
		errors.Is(err, fetch.ErrPort) || fetch.Stop(err) == "dns"
}
