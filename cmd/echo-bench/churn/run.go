package churn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Result has the figures of the swarm and those of the baseline.
type Result struct {
	Partition string  `json:"partition"`
	Peers     int     `json:"peers"`
	Replicas  int     `json:"replicas"`
	DelayMS   float64 `json:"delay_ms"`
	Sites     int     `json:"sites"`
	ToleredMS float64 `json:"tolerance_ms"`
	Figures
	Baseline *Figures `json:"baseline,omitempty"`
}

// Run runs the churn and computes its figures. An error means that there are no figures.
// Figures that miss a target are no error.
func Run(ctx context.Context, o Options) (r Result, err error) {
	o = o.filled()
	if err := o.validate(); err != nil {
		return r, err
	}
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "echo-churn-"); err != nil {
			return r, err
		}
		defer func() {
			if err == nil {
				err = os.RemoveAll(o.Dir)
			} else {
				err = fmt.Errorf("%w (logs are kept in %s)", err, o.Dir)
			}
		}()
	}
	r = Result{Partition: o.Partition, Peers: o.Peers, Replicas: o.Replicas,
		DelayMS: float64(o.Delay.Microseconds()) / 1000, Sites: o.Sites,
		ToleredMS: float64(o.Tolerance().Microseconds()) / 1000}
	fleets := make([]*fleet, 0, 2)
	defer func() {
		for _, f := range fleets {
			err = errors.Join(err, f.close())
		}
	}()
	for _, naive := range []bool{false, true}[:1+btoi(!o.Alone)] {
		f, err := newFleet(o, naive, o.Dir)
		if err != nil {
			return r, err
		}
		fleets = append(fleets, f)
	}
	if err := conduct(ctx, o, fleets); err != nil {
		return r, err
	}
	for _, f := range fleets {
		g, err := f.figures(ctx)
		if err != nil {
			return r, err
		}
		if f.naive {
			r.Baseline = &g
		} else {
			r.Figures = g
		}
	}
	return r, nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// conduct starts the fleets, gives them seeds, and does the events of the plan to all fleets at
// the same moments.
func conduct(ctx context.Context, o Options, fleets []*fleet) error {
	both := func(do func(*fleet) error) error {
		var wg sync.WaitGroup
		errs := make([]error, len(fleets))
		for i, f := range fleets {
			wg.Go(func() { errs[i] = do(f) })
		}
		wg.Wait()
		return errors.Join(errs...)
	}
	began := time.Now()
	say := func(format string, a ...any) {
		fmt.Fprintf(o.Talk, "%6.1f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, a...))
	}
	if err := both(func(f *fleet) error { return f.open(ctx) }); err != nil {
		return err
	}
	say("%d peers each are up; a world of %d sites, %d pages", o.Peers, o.Sites,
		len(fleets[0].world.Expected(fleets[0].world.Seeds())))
	began = time.Now()
	if err := both((*fleet).seed); err != nil {
		return err
	}
	for _, e := range plan(o) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(began.Add(e.at))):
		}
		if err := both(func(f *fleet) error { return errors.Join(f.do(e), f.failure()) }); err != nil {
			return err
		}
		say("%s%s", e, progress(fleets))
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(began.Add(o.Duration))):
	}
	say("the churn is over%s", progress(fleets))
	return nil
}

func (e event) String() string {
	switch e.act {
	case actKill, actRestart, actJoin:
		return fmt.Sprintf("%-8s peer %d", e.act, e.peer+1)
	case actCut:
		return fmt.Sprintf("%-8s %d from the others", e.act, len(e.side))
	}
	return e.act
}

func progress(fleets []*fleet) string {
	text := ""
	for _, f := range fleets {
		r := f.world.Report()
		text += fmt.Sprintf("  %s: pages %d twice %d hurried %d", f.label, r.Pages, r.Duplicates, r.Hurried)
	}
	return text
}

// figures waits for the end and computes the figures.
func (f *fleet) figures(ctx context.Context) (Figures, error) {
	idle, err := f.finish(ctx, f.o.Settle)
	if err != nil {
		return Figures{}, err
	}
	busy := ""
	if !idle {
		busy = fmt.Sprintf("not done after %v: %s", f.o.Settle, f.unfinished())
	}
	records, err := f.records()
	note := ""
	if err != nil && records == nil {
		return Figures{}, err
	} else if err != nil {
		note = err.Error()
	}
	if err := f.writeVisits(); err != nil {
		return Figures{}, err
	}
	g := f.account(records)
	g.Idle, g.Note = idle, strings.Join(slices.DeleteFunc([]string{note, busy}, func(s string) bool { return s == "" }),
		"; ")
	return g, nil
}
