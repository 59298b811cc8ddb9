package churn

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Options of Run. The zero value of every field but Program is usable.
type Options struct {
	Program   []string      // the command line that becomes a peer when a Spec is added (RunPeer); required
	Peers     int           // at the start; default 8
	Partition string        // hash or geo; default hash
	Replicas  int           // replicas of a slice; default 3
	KillEvery time.Duration // default 10 s, negative = no kills
	Random    bool          // a kill comes at any moment of its KillEvery, by Seed, and not at the end of it
	Restart   time.Duration // after a kill; default 5 s
	Cut       time.Duration // length of the one cut into two halves; default 20 s, negative = none
	Joins     int           // peers that come later; default 1, negative = none
	Duration  time.Duration // of the churn; default 120 s
	Settle    time.Duration // most time to the end of the crawl after it; default Duration + 60 s
	Delay     time.Duration // least gap between two requests to a site; default 1 s
	Sites     int           // default 5 for each peer
	Pages     int           // articles a site; default as many as take 0.85 of Duration at Delay
	Seed      uint64        // of the world, the victims and the halves
	Alone     bool          // without the baseline
	Verbose   bool          // the peers log more
	Dir       string        // for the data; default a temporary directory, removed afterwards
	Talk      io.Writer     // what happens, as it happens; default nowhere
}

// Limits of what may be asked for.
const (
	maxPeers    = 64
	maxDuration = 24 * time.Hour
)

func (o Options) filled() Options {
	number := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	span := func(p *time.Duration, v time.Duration) {
		if *p == 0 {
			*p = v
		}
	}
	number(&o.Peers, 8)
	number(&o.Replicas, 3)
	number(&o.Joins, 1)
	number(&o.Sites, 5*o.Peers)
	span(&o.KillEvery, 10*time.Second)
	span(&o.Restart, 5*time.Second)
	span(&o.Cut, 20*time.Second)
	span(&o.Duration, 2*time.Minute)
	span(&o.Settle, o.Duration+time.Minute)
	span(&o.Delay, time.Second)
	number(&o.Pages, max(2, int(0.85*float64(o.Duration)/float64(o.Delay))))
	if o.Partition == "" {
		o.Partition = "hash"
	}
	if o.Talk == nil {
		o.Talk = io.Discard
	}
	return o
}

func (o Options) validate() error {
	var faults []error
	fault := func(bad bool, format string, a ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, a...))
		}
	}
	fault(len(o.Program) == 0, "no program to start peers with")
	fault(o.Peers < 1 || o.Peers > maxPeers, "peers %d: want 1 to %d", o.Peers, maxPeers)
	fault(o.Joins > maxPeers, "join %d: want at most %d", o.Joins, maxPeers)
	fault(o.Partition != "hash" && o.Partition != "geo", "partition %q: want hash or geo", o.Partition)
	fault(o.Replicas < 1, "replicas %d: want at least 1", o.Replicas)
	fault(o.Duration < 0 || o.Duration > maxDuration, "duration %v: want 0 to %v", o.Duration, maxDuration)
	fault(o.Restart < 0 || o.Settle < 0, "negative restart-after or settle")
	fault(o.Delay < time.Millisecond, "delay %v: want at least 1ms", o.Delay)
	fault(o.Sites < 1 || o.Pages < 1, "sites %d, pages %d: want at least 1", o.Sites, o.Pages)
	return errors.Join(faults...)
}

// Check says what is wrong with o: nil when Run takes it.
func (o Options) Check() error { return o.filled().validate() }

// Tolerance is how much shorter than the delay a gap may be before it counts as
// a violation: the server notes a request when the kernel has woken it, later
// than it came by what other processes take of the machine, and this time is not
// the same for two requests. A twentieth of the delay, and at least 5 ms.
func (o Options) Tolerance() time.Duration { return max(o.Delay/20, 5*time.Millisecond) }
