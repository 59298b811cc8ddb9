package poll

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/echo-node/echo-node/cmd/echo-lab/policy"
	"github.com/echo-node/echo-node/crawler/schedule"
)

// PostsOptions are the options of NewPosts. The zero value is the default.
type PostsOptions struct {
	Batch int           // accounts of one look-up; default 100
	Page  int           // largest number of posts from one timeline call; default 200
	Floor time.Duration // the shortest time between two calls for one account; default 1 min
	// Keep is for how long a post that was not fetched counts as missing: the cost of a post
	// beyond the page. Default 30 days.
	Keep time.Duration
}

// Validate returns all errors at once.
func (o *PostsOptions) Validate() error {
	var faults []error
	if o.Batch < 0 || o.Page < 0 {
		faults = append(faults, fmt.Errorf("batch %d, page %d", o.Batch, o.Page))
	}
	if o.Floor < 0 || o.Keep < 0 {
		faults = append(faults, fmt.Errorf("negative time: floor %s, keep %s", o.Floor, o.Keep))
	}
	if len(faults) > 0 {
		return fmt.Errorf("poll: posts: %w", errors.Join(faults...))
	}
	return nil
}

func (o PostsOptions) withDefaults() PostsOptions {
	if o.Batch == 0 {
		o.Batch = 100
	}
	if o.Page == 0 {
		o.Page = 200
	}
	if o.Floor == 0 {
		o.Floor = time.Minute
	}
	if o.Keep == 0 {
		o.Keep = 30 * 24 * time.Hour
	}
	return o
}

// Posts decides the accounts and the kind of the next call, so that as few posts as possible
// are missing at any time. See the package comment. It is not safe for concurrent use.
type Posts struct {
	o     PostsOptions
	known map[string]*postsState
	looks heap // by when a look-up is due
	reads heap // by the value of a timeline call
	batch []item
	price float64 // log of the value of a call, in days of a missing post
	last  int64   // time of the previous call
	began int64

	recency  schedule.Recency
	rhythm   schedule.Rhythm
	hours    [168]float64
	dated    float64 // posts in hours
	dateNext float64 // value of dated at which the rhythm is learned again
	news     tallied // posts of the population
	over     tallied // of these, the posts overwritten before a look-up saw them
}

// tallied is a number of posts in a number of days of accounts.
type tallied struct{ posts, days float64 }

// postsState is what is known of an account.
type postsState struct {
	rate, lost policy.Gamma // posts, and posts that look-ups did not show, per busy day
	looked     int64        // at the last call for it
	latest     int64        // its last post then
	total      int64        // its counter then; unknown = -1
	debt       int          // existing posts that were not fetched
	wait       float64      // the right number of days to the next look-up the last time
	due, worth int64        // its items in the two orders
	taken      bool
}

const (
	unknown = -1
	// postsShape is how certain the prior of an account's rate is: most accounts post almost
	// nothing and a few post all the time.
	postsShape = 0.3
	halfLife   = 30 * 24 * time.Hour // of what was learned of a rate
	priceDays  = 0.25                // the period over which the price follows the value of calls
	pageSafe   = 0.6                 // of a page; above it posts may soon be lost
	mostNews   = 10                  // pages: the largest growth of a counter between two calls
	lookSteps  = 5                   // of the search for the time
	lookMost   = 30.0                // days between two looks at any account
)

// NewPosts returns an empty queue.
func NewPosts(o PostsOptions) (*Posts, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Posts{o: o.withDefaults(), known: map[string]*postsState{}, reads: heap{down: true}, dateNext: 200,
		news: tallied{1, 1}, over: tallied{0.5, 1}}, nil
}

// Len returns how many accounts are known.
func (p *Posts) Len() int { return len(p.known) }

// Price returns the value of recent calls, in days of a missing post.
func (p *Posts) Price() float64 { return math.Exp(p.price) }

// Put adds an account whose last post was at latest (zero: none is known). The time since then
// counts as seen.
func (p *Posts) Put(account string, latest, now time.Time) {
	s := &postsState{latest: min(nanos(latest), nanos(now)), total: unknown, looked: nanos(now.Add(-p.o.Floor))}
	s.rate, s.lost = p.prior(&p.news), p.prior(&p.over)
	if !latest.IsZero() && now.After(latest) {
		days := now.Sub(latest).Hours() / 24
		s.rate, s.lost = s.rate.Observe(0, days), s.lost.Observe(0, days)
	}
	p.known[account] = s
	s.due = s.looked // a new account is looked up next
	p.looks.push(item{s.due, account})
}

// Drop removes an account that is dead, protected, or moved.
func (p *Posts) Drop(account string) { delete(p.known, account) }

// Next returns the call to make now: a timeline call for one account, or a look-up of the last
// post and the counter of up to Batch accounts. Looked and Read take the responses; Put or
// Failed take a failed call. Next returns no account if none may be asked again yet.
func (p *Posts) Next(now time.Time) (accounts []string, timeline bool) {
	at := nanos(now)
	look, read := p.batchWorth(at), 0.0
	top, found := p.reads.first(p.owed)
	if found && at-p.known[top.name].looked >= int64(p.o.Floor) {
		read = math.Float64frombits(uint64(top.at))
	}
	if read > look {
		p.follow(read, at)
		p.reads.pop()
		p.known[top.name].taken = true
		return []string{top.name}, true
	}
	p.gather()
	kept := p.batch[:0]
	for _, v := range p.batch {
		switch s := p.known[v.name]; {
		case s.taken: // it was put in twice
		case at-s.looked >= int64(p.o.Floor):
			s.taken = true
			accounts = append(accounts, v.name)
		default:
			kept = append(kept, v)
		}
	}
	p.batch = kept
	if len(accounts) > 0 {
		p.follow(look, at)
	}
	return accounts, false
}

// batchWorth returns the value of the next look-up, from the account in its middle.
func (p *Posts) batchWorth(at int64) float64 {
	n := len(p.batch)
	if n == 0 || !p.waits(p.batch[n/2]) {
		p.gather()
		if n = len(p.batch); n == 0 {
			return 0
		}
	}
	return float64(n) * p.lookWorth(p.known[p.batch[n/2].name], at)
}

// gather fills the batch of the next look-up with the accounts that are due first.
func (p *Posts) gather() {
	kept := p.batch[:0]
	for _, v := range p.batch {
		if p.waits(v) {
			kept = append(kept, v)
		}
	}
	p.batch = kept
	for len(p.batch) < p.o.Batch {
		v, ok := p.looks.first(p.waits)
		if !ok {
			return
		}
		p.looks.pop()
		p.batch = append(p.batch, v)
	}
}

func (p *Posts) waits(v item) bool {
	s := p.known[v.name]
	return s != nil && !s.taken && s.due == v.at
}

func (p *Posts) owed(v item) bool {
	s := p.known[v.name]
	return s != nil && !s.taken && s.debt > 0 && s.worth == v.at
}

// follow moves the price to the value of this call.
func (p *Posts) follow(worth float64, at int64) {
	if p.last == 0 {
		p.last, p.began = at, at
	}
	days := float64(at-p.last) / nanosPerDay
	memory := min(priceDays, float64(at-p.began)/nanosPerDay+1e-3)
	step := math.Log(max(worth, 1e-9)) - p.price
	p.price += (1 - math.Exp(-days/memory)) * min(max(step, -2), 2)
	p.last = at
}

const nanosPerDay = 24 * float64(time.Hour)

// Looked takes the response of a look-up: the account's counter of posts and its last post,
// which is fetched with it. If a counter jumps by more than mostNews pages, only that much
// counts.
func (p *Posts) Looked(account string, total int64, latest, now time.Time) {
	s := p.known[account]
	if s == nil {
		return
	}
	n := 0
	if nanos(latest) > s.latest {
		n = 1
	}
	total = max(total, 0)
	if s.total != unknown {
		n = int(min(max(int64(n), total-s.total), mostNews*int64(p.o.Page)))
	}
	p.date(latest, s.latest)
	s.debt += max(0, n-1)
	s.total = total
	p.learn(s, n, max(0, n-1), latest, now)
	p.place(account, s, now)
}

// Read takes the response of a timeline call: the times of the posts, newest first. All of them
// may be new.
func (p *Posts) Read(account string, posts []time.Time, now time.Time) {
	s := p.known[account]
	if s == nil {
		return
	}
	n := 0
	for n < len(posts) && nanos(posts[n]) > s.looked {
		p.date(posts[n], s.latest)
		n++
	}
	if s.total != unknown {
		s.total += int64(n)
	}
	if n > 0 && n == len(posts) && n >= p.o.Page {
		s.total = unknown // there may be more posts, which cannot be fetched any more
	}
	s.debt = 0
	latest := time.Time{}
	if len(posts) > 0 {
		latest = posts[0]
	}
	p.learn(s, n, max(0, n-1), latest, now)
	p.place(account, s, now)
}

// Failed puts back an account unchanged.
func (p *Posts) Failed(account string, now time.Time) {
	if s := p.known[account]; s != nil {
		s.looked = nanos(now)
		p.place(account, s, now)
	}
}

// learn takes n posts since the last call, of which over were overwritten.
func (p *Posts) learn(s *postsState, n, over int, latest, now time.Time) {
	then := moment(s.looked)
	wait := now.Sub(then)
	if days := wait.Hours() / 24; days > 0 {
		if s.latest != 0 {
			p.recency.Learn(float64(s.looked-s.latest)/nanosPerDay, days, s.rate.Mean(), n)
		}
		busy := p.rhythm.Busy(then, now).Hours() / 24
		s.rate = s.rate.Forget(p.prior(&p.news), wait, halfLife).Observe(n, busy)
		s.lost = s.lost.Forget(p.prior(&p.over), wait, halfLife).Observe(over, busy)
		p.news.posts, p.news.days = p.news.posts+float64(n), p.news.days+days
		p.over.posts, p.over.days = p.over.posts+float64(over), p.over.days+days
	}
	// clocks can be wrong
	s.looked, s.latest = nanos(now), max(s.latest, min(nanos(latest), nanos(now)))
}

// prior returns a belief about the rate of an unknown account.
func (p *Posts) prior(t *tallied) policy.Gamma {
	return policy.Gamma{Shape: postsShape, Days: postsShape * t.days / t.posts}
}

// date learns the hours of the week from a new post.
func (p *Posts) date(at time.Time, known int64) {
	if nanos(at) <= known {
		return
	}
	p.hours[schedule.HourOfWeek(at)%24]++
	if p.dated++; p.dated < p.dateNext {
		return
	}
	p.dateNext = 2*p.dated + 200
	var counts [168]float64
	for h := range counts {
		counts[h] = p.hours[h%24] / 7
	}
	if r, err := schedule.NewRhythm(counts, 0); err == nil {
		p.rhythm = r
	}
}

// place sets when the account's next look-up is due, and the value of a call for its timeline.
func (p *Posts) place(account string, s *postsState, now time.Time) {
	s.taken = false
	s.due = p.lookDue(s)
	p.looks.push(item{s.due, account})
	p.looks.rebuild(len(p.known), p.waits)
	if s.debt > 0 {
		s.worth = int64(math.Float64bits(p.readWorth(s)))
		p.reads.push(item{s.worth, account})
		p.reads.rebuild(len(p.known), p.owed)
	}
}

// readWorth returns the value of reading a timeline with s.debt missing posts, in days of a
// missing post.
func (p *Posts) readWorth(s *postsState) float64 {
	k := float64(s.debt)
	worth := k * (k + 1) / (2 * s.lost.Mean())
	if over := k - pageSafe*float64(p.o.Page); over > 0 {
		worth += over * p.o.Keep.Hours() / 24
	}
	return worth
}

// lookWorth returns the value of a look-up of the account at the time at.
func (p *Posts) lookWorth(s *postsState, at int64) float64 {
	tau := float64(at-s.looked) / nanosPerDay
	if tau <= 0 {
		return 0
	}
	busy := p.rhythm.Busy(moment(s.looked), moment(at)).Hours() / 24
	extra := 0.0
	if s.latest != 0 {
		extra = p.recency.Extra(float64(s.looked-s.latest)/nanosPerDay, tau)
	}
	x := s.rate.Mean()*busy + extra
	none := s.rate.Survive(busy) * math.Exp(-extra)
	two := 1 - none*(1+s.rate.Shape*busy/(s.rate.Days+busy)+extra)
	return max(0, two) * (tau/x + p.debtCost(s))
}

// debtCost returns the cost of one more post that look-ups do not show.
func (p *Posts) debtCost(s *postsState) float64 {
	price := p.Price()
	return min(price, math.Sqrt(price/(2*s.lost.Mean())))
}

// lookDue returns when a look-up is worth its part of a call. The value grows with a power of
// the time between the first and the second. So a few steps from the last result are enough.
func (p *Posts) lookDue(s *postsState) int64 {
	part := p.Price() / float64(p.o.Batch)
	least := p.o.Floor.Hours() / 24
	if s.wait == 0 {
		s.wait = 1 / max(s.rate.Mean(), 1/lookMost)
	}
	for range lookSteps {
		ratio := part / max(p.lookWorth(s, s.looked+int64(s.wait*nanosPerDay)), 1e-12)
		if ratio > 0.9 && ratio < 1.1 {
			break
		}
		s.wait = min(max(s.wait*math.Pow(ratio, 0.6), least), lookMost)
	}
	return s.looked + int64(s.wait*nanosPerDay)
}
