package churn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// RatioOptions are the arguments of Ratio. The zero value of every field except Program is
// usable.
type RatioOptions struct {
	Program  []string      // as in Options
	Peers    int           // default 3
	Replicas int           // compared with 1; default 3
	Rounds   int           // runs of each; default 3
	Sites    int           // default 400
	Pages    int           // articles per site; default 10
	Limit    time.Duration // of one run; default 5 min
	Seed     uint64
	Talk     io.Writer
}

// RatioResult is the throughput of one swarm with many replicas of a slice, compared with the
// same swarm with one, in the same run.
type RatioResult struct {
	Peers int        `json:"peers"`
	Runs  []RatioRun `json:"runs"`
	// Ratio is the median of pages per second with Replicas, divided by that with 1. It is
	// meaningful only on a machine that does nothing else. RatioCPU uses pages per second of
	// the peers' processor time, which other work affects less.
	Ratio    float64 `json:"ratio"`
	RatioCPU float64 `json:"ratio_cpu"`
}

// RatioRun is one crawl.
type RatioRun struct {
	Replicas int     `json:"replicas"`
	Pages    int     `json:"pages"`
	Coverage float64 `json:"coverage"`
	Twice    int64   `json:"twice"`
	Seconds  float64 `json:"seconds"` // from the first page to the last, as the test web saw it
	PerS     float64 `json:"pages_per_s"`
	CPU      float64 `json:"cpu_s"` // of all peers, from their start to their end
}

// ratioDelay is so short that politeness does not limit the crawl.
const ratioDelay = time.Millisecond

func (o RatioOptions) filled() RatioOptions {
	for p, v := range map[*int]int{&o.Peers: 3, &o.Replicas: 3, &o.Rounds: 3, &o.Sites: 400, &o.Pages: 10} {
		if *p == 0 {
			*p = v
		}
	}
	if o.Limit == 0 {
		o.Limit = 5 * time.Minute
	}
	if o.Talk == nil {
		o.Talk = io.Discard
	}
	return o
}

// Check returns the errors in o, or nil when Ratio accepts it.
func (o RatioOptions) Check() error {
	o = o.filled()
	err := o.run(1, "").Check()
	if o.Rounds < 1 || o.Limit < 0 || o.Replicas < 2 {
		err = errors.Join(err, fmt.Errorf("rounds %d, limit %v, replicas %d: want at least 1, 0 and 2", o.Rounds,
			o.Limit, o.Replicas))
	}
	return err
}

// run returns the options of one crawl without churn.
func (o RatioOptions) run(replicas int, dir string) Options {
	return Options{Program: o.Program, Peers: o.Peers, Replicas: replicas, KillEvery: -1, Cut: -1, Joins: -1,
		Delay: ratioDelay, Sites: o.Sites,
		Pages: o.Pages, Seed: o.Seed, Settle: o.Limit, Alone: true, Dir: dir}
}

// Ratio crawls the same test web repeatedly, alternating between one replica and many. The
// order is 1, 3, 3, 1, …, so that changes on the machine affect both. It compares pages per
// second.
func Ratio(ctx context.Context, o RatioOptions) (r RatioResult, err error) {
	if err := o.Check(); err != nil {
		return r, err
	}
	o = o.filled()
	dir, err := os.MkdirTemp("", "echo-ratio-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r.Peers = o.Peers
	perS, perCPU := map[int][]float64{}, map[int][]float64{}
	for i := range 2 * o.Rounds {
		replicas := 1
		if i%4 == 1 || i%4 == 2 {
			replicas = o.Replicas
		}
		run, err := once(ctx, o.run(replicas, filepath.Join(dir, fmt.Sprint(i))))
		if err != nil {
			return r, err
		}
		fmt.Fprintf(o.Talk, "replicas %d: %d pages in %.1f s, %.0f a second, %.1f s of processor time\n", replicas,
			run.Pages, run.Seconds, run.PerS, run.CPU)
		r.Runs = append(r.Runs, run)
		perS[replicas] = append(perS[replicas], run.PerS)
		perCPU[replicas] = append(perCPU[replicas], float64(run.Pages)/run.CPU)
	}
	r.Ratio, r.RatioCPU = median(perS[o.Replicas])/median(perS[1]), median(perCPU[o.Replicas])/median(perCPU[1])
	return r, nil
}

// once crawls a test web once and returns its throughput. A crawl that does not end within
// o.Settle is an error.
func once(ctx context.Context, o Options) (run RatioRun, err error) {
	o = o.filled()
	f, err := newFleet(o, false, o.Dir)
	if err != nil {
		return run, err
	}
	defer func() {
		err = errors.Join(err, f.close(), os.RemoveAll(o.Dir))
		for _, m := range f.members {
			run.CPU += m.cpu.Seconds()
		}
	}()
	if err := f.open(ctx); err != nil {
		return run, err
	}
	if err := f.seed(); err != nil {
		return run, err
	}
	idle, err := f.finish(ctx, o.Settle)
	if err != nil {
		return run, err
	}
	rep, all := f.world.Report(), f.visits.Sorted()
	if !idle || len(all) < 2 {
		return run, fmt.Errorf("a crawl with %d replicas does not end in %v (%d pages)", o.Replicas, o.Settle,
			rep.Pages)
	}
	expected := f.world.Expected(f.world.Seeds())
	d := f.world.Compare(expected)
	run = RatioRun{Replicas: o.Replicas, Pages: int(rep.Pages),
		Coverage: 1 - float64(len(d.Missing))/float64(len(expected)), Twice: rep.Duplicates,
		Seconds: all[len(all)-1].At.Sub(all[0].At).Seconds()}
	run.PerS = float64(run.Pages) / run.Seconds
	return run, nil
}
