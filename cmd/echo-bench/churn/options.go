package churn

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Options are the arguments of Run. The zero value of every field except Program is usable.
type Options struct {
	// the command line that runs a peer when a Spec is appended (RunPeer); required
	Program   []string
	Peers     int           // at the start; default 8
	Partition string        // hash or geo; default hash
	Replicas  int           // replicas of a slice; default 3
	KillEvery time.Duration // default 10 s, negative = no kills
	// a kill comes at any moment of its KillEvery, by Seed, and not at its end
	Random  bool
	Restart time.Duration // after a kill; default 5 s
	// length of the only cut, into two halves; default 20 s, negative = none
	Cut      time.Duration
	Joins    int           // peers that join later; default 1, negative = none
	Duration time.Duration // of the churn; default 120 s
	// longest time from its end to the end of the crawl; default Duration + 60 s
	Settle  time.Duration
	Delay   time.Duration // smallest gap between two requests to a site; default 1 s
	Sites   int           // default 5 for each peer
	Pages   int           // articles per site; default as many as take 0.85 of Duration at Delay
	Seed    uint64        // of the test web, the killed peers and the halves
	Alone   bool          // without the baseline
	Verbose bool          // the peers log more
	Dir     string        // for the data; default a temporary directory, removed afterwards
	Talk    io.Writer     // gets events as they happen; default none
}

// Limits of the options.
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

// Check returns the errors in o, or nil when Run accepts it.
func (o Options) Check() error { return o.filled().validate() }

// Tolerance is how much shorter than the delay a gap may be before it counts as a violation.
// The server records a request only when the kernel wakes it. That delay depends on the load of
// the machine and differs between two requests. The tolerance is a twentieth of the delay, and
// at least 5 ms.
func (o Options) Tolerance() time.Duration { return max(o.Delay/20, 5*time.Millisecond) }
