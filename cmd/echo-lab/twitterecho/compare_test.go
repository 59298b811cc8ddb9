package twitterecho

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/echo-node/echo-node/partition/racetest"
)

// In the worlds of the tests of package community, its judge is better than TwitterEcho's method in
// everything. Seed 1 was used while the weights of that judge were chosen; the others were not.
func TestOursIsAhead(t *testing.T) {
	all := []Options{{"portugal", 2000, 302, 1}, {"brazil", 2000, 302, 1}}
	if !racetest.Small(t) {
		for _, seed := range []uint64{1, 301} {
			all = append(all, Options{"portugal", 2000, seed, 1}, Options{"brazil", 2000, seed, 1},
				Options{"portugal", 600, seed, 1}) // as in the test of crawler/social
		}
	}
	for _, o := range all {
		r, err := Compare(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range map[string]Side{Ours: r.Ours, Theirs: r.Theirs} {
			t.Logf("%+v, %s: in %.4f right of %d, out %.4f of %d, undecided %d of %d; %d calls, wrong %v, undecided %v",
				o, name, s.PrecisionIn, s.In, s.PrecisionOut, s.Out, s.Undecided, r.People, s.Calls, s.Wrong, s.Open)
			if fault := addsUp(r, s); fault != "" {
				t.Errorf("%+v, %s: %s: %+v", o, name, fault, s)
			}
		}
		for _, fault := range r.Faults() {
			t.Errorf("%+v: %v", o, fault)
		}
		if (r.Printed != nil) != (o.Community == "portugal") || r.ByProfile <= 0 || r.ByProfile >= 1 {
			t.Errorf("%+v: printed %v, by profile %g", o, r.Printed, r.ByProfile)
		}
	}
}

// addsUp returns a contradiction in the counts of a side, or "".
func addsUp(r *Report, s Side) string {
	sum := func(counts map[string]int) (all int) {
		for n := range maps.Values(counts) {
			all += n
		}
		return all
	}
	switch {
	case s.In+s.Out+s.Undecided != r.People:
		return "not everybody has a verdict"
	case s.InRight+s.Out-s.OutRight+s.UndecidedMembers != r.Members:
		return "not every member is counted"
	case sum(s.Wrong) != s.In-s.InRight+s.Out-s.OutRight || sum(s.Open) != s.Undecided:
		return "the classes do not add up"
	case s.RecallIn != float64(s.InRight)/float64(r.Members) || s.PrecisionOut != float64(s.OutRight)/float64(s.Out):
		return "the rates are not those of the counts"
	}
	return ""
}

// Several populations are counted together.
func TestSeedsTogether(t *testing.T) {
	one := func(seed uint64, seeds int) *Report {
		r, err := Compare(t.Context(), Options{"portugal", 200, seed, seeds})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a, b, both := one(5, 1), one(6, 1), one(5, 2)
	if both.People != 400 || both.Members != a.Members+b.Members || !slices.Equal(both.Seeds, []uint64{5, 6}) ||
		both.Theirs.In != a.Theirs.In+b.Theirs.In || both.Ours.OutRight != a.Ours.OutRight+b.Ours.OutRight ||
		both.Ours.Calls != a.Ours.Calls+b.Ours.Calls || both.Theirs.Calls != a.Theirs.Calls+b.Theirs.Calls {
		t.Errorf("%+v and %+v are not %+v", a, b, both)
	}
}

func TestPrinted(t *testing.T) {
	in, out, undecided := Printed().Precision()
	if got := fmt.Sprintf("%.3f %.3f %.3f", in, out, undecided); got != "0.908 0.995 0.120" {
		t.Errorf("%s, the dissertation says 90.8 %%, 99.5 %% and 12 %%", got)
	}
}

func TestFaults(t *testing.T) {
	ahead := Side{PrecisionIn: 0.9, RecallIn: 0.9, PrecisionOut: 0.9, RecallOut: 0.9}
	behind := ahead
	behind.RecallIn, behind.PrecisionOut = 0.8, 0.7
	if faults := (&Report{Ours: ahead, Theirs: behind}).Faults(); len(faults) != 0 {
		t.Errorf("ahead: %v", faults)
	}
	if faults := (&Report{Ours: behind, Theirs: ahead}).Faults(); len(faults) != 2 {
		t.Errorf("behind in two: %v", faults)
	}
}

func TestCompareRefuses(t *testing.T) {
	for _, o := range []Options{{}, {"portugal", 5, 1, 1}, {"portugal", 100, 1, 0}, {"nowhere", 100, 1, 1}} {
		if _, err := Compare(t.Context(), o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compare(ctx, Options{"portugal", 100, 1, 1}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
