package social

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/echo-node/echo-node/cmd/echo-lab/policy"
	"github.com/echo-node/echo-node/cmd/echo-lab/poll"
)

// The policies that can play.
const (
	SixClasses = "six-classes" // poll.Echo: look-ups only
	Ours       = "default"     // poll.Posts
)

// Play is the result of one policy with one budget.
type Play struct {
	Policy  string
	Budget  float64 // calls per day and peer
	Peers   int
	world   *Community
	had     [][]int32 // by account and post: seconds from the start until it was fetched, 0 = never
	servers []*server
}

// server responds to one peer and counts.
type server struct {
	c         *Community
	had       [][]int32
	next      []int32 // number of posts of an account up to the last request
	read      []int32 // posts before this are settled: a timeline was read there
	allowed   int     // calls in each window
	window    int64
	inWindow  int
	calls     int
	timelines int
	overLimit int
	last      int64 // time of the last call
}

// windowSeconds is the API's window, 15 minutes.
const windowSeconds = 900

func (s *server) call(at int64) {
	s.last = at
	if w := (at - s.c.start) / windowSeconds; w != s.window {
		s.window, s.inWindow = w, 0
	}
	s.calls++
	if s.inWindow++; s.inWindow > s.allowed {
		s.overLimit++
	}
}

// upTo returns how many posts of i exist at the time at. Times do not go back.
func (s *server) upTo(i int32, at int64) int {
	n, posts := int(s.next[i]), s.c.posts[i]
	for n < len(posts) && posts[n] <= at {
		n++
	}
	s.next[i] = int32(n)
	return n
}

// have records that post k of i was fetched.
func (s *server) have(i int32, k int, at int64) {
	if s.had[i][k] == 0 {
		s.had[i][k] = int32(at - s.c.start + 1)
	}
}

// lookup returns the counter and the last post of an account.
func (s *server) lookup(i int32, at int64) (total int64, latest time.Time) {
	n := s.upTo(i, at)
	if n == 0 {
		return 0, time.Time{}
	}
	s.have(i, n-1, at)
	return int64(n), clock(s.c.posts[i][n-1])
}

// timeline returns the newest page of posts of an account, newest first.
func (s *server) timeline(i int32, at int64) []time.Time {
	n := s.upTo(i, at)
	for k := max(int(s.read[i]), n-page); k < n; k++ {
		s.have(i, k, at)
	}
	s.read[i] = int32(n)
	out := make([]time.Time, 0, min(n, page))
	for k := n - 1; k >= max(0, n-page); k-- {
		out = append(out, clock(s.c.posts[i][k]))
	}
	return out
}

// Run plays a policy with that many calls a day for each peer.
func Run(ctx context.Context, c *Community, policy string, budget float64, peers int) (*Play, error) {
	p := &Play{Policy: policy, Budget: budget, Peers: peers, world: c, had: make([][]int32, len(c.posts))}
	for i := range p.had {
		p.had[i] = make([]int32, len(c.posts[i]))
	}
	p.servers = make([]*server, peers)
	faults := make([]error, peers)
	var wg sync.WaitGroup
	for peer := range peers {
		wg.Go(func() {
			s := &server{c: c, had: p.had, next: make([]int32, len(c.posts)), read: make([]int32, len(c.posts)),
				allowed: int(math.Ceil(budget * windowSeconds / perDay))}
			p.servers[peer] = s
			faults[peer] = s.play(ctx, policy, budget, c.share(peer, peers))
		})
	}
	wg.Wait()
	for _, err := range faults {
		if err != nil {
			return nil, fmt.Errorf("social: play: %w", err)
		}
	}
	return p, nil
}

// asker is a running policy: it makes one call.
type asker func(now time.Time) error

// play makes a peer's calls, at even gaps.
func (s *server) play(ctx context.Context, policy string, budget float64, accounts []int32) error {
	ask, err := s.echo(accounts)
	if policy == Ours {
		ask, err = s.ours(accounts)
	}
	if err != nil {
		return err
	}
	gap := perDay / budget
	for k := 0; ; k++ {
		at := float64(s.c.start) + gap*(float64(k)+0.5)
		if at >= float64(s.c.end) {
			return nil
		}
		if k%1000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := ask(time.UnixMilli(int64(at * 1000)).UTC()); err != nil {
			return err
		}
	}
}

// echo makes calls like TwitterEcho.
func (s *server) echo(accounts []int32) (asker, error) {
	e, err := poll.NewEcho(poll.EchoOptions{})
	if err != nil {
		return nil, err
	}
	latest := make([]time.Time, len(s.c.posts))
	for _, i := range accounts {
		latest[i] = s.c.known(i)
		e.Put(s.c.names[i], policy.Memo{}, time.Time{}, latest[i], clock(s.c.start))
	}
	return func(now time.Time) error {
		names := e.Next(batch, now)
		if len(names) == 0 {
			return nil
		}
		at := now.Unix()
		s.call(at)
		for _, name := range names {
			i := s.c.index[name]
			_, post := s.lookup(i, at)
			changed := post.After(latest[i])
			if changed {
				latest[i] = post
			}
			e.Checked(name, now, changed, post)
		}
		return nil
	}, nil
}

// ours makes the calls that poll.Posts chooses.
func (s *server) ours(accounts []int32) (asker, error) {
	p, err := poll.NewPosts(poll.PostsOptions{Batch: batch, Page: page})
	if err != nil {
		return nil, err
	}
	for _, i := range accounts {
		p.Put(s.c.names[i], s.c.known(i), clock(s.c.start))
	}
	return func(now time.Time) error {
		names, timeline := p.Next(now)
		if len(names) == 0 {
			return nil
		}
		at := now.Unix()
		s.call(at)
		if timeline {
			s.timelines++
			for _, name := range names { // one
				p.Read(name, s.timeline(s.c.index[name], at), now)
			}
			return nil
		}
		for _, name := range names {
			total, post := s.lookup(s.c.index[name], at)
			p.Looked(name, total, post, now)
		}
		return nil
	}, nil
}
