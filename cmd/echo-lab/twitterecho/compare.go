package twitterecho

import (
	"context"
	"errors"
	"fmt"

	"github.com/echo-node/echo-node/crawler/judge/community"
	"github.com/echo-node/echo-node/crawler/judge/community/communitytest"
)

// The methods that are compared.
const (
	Ours   = "echo-node"
	Theirs = "TwitterEcho"
)

// ErrOptions is wrapped by the errors of options that make no sense.
var ErrOptions = errors.New("community: options")

// Options are the options of Compare.
type Options struct {
	Community string // portugal or brazil
	People    int    // of one population
	Seed      uint64 // of the first population; the next one has the next seed
	Seeds     int    // number of populations
}

// Report compares two methods on the same people.
type Report struct {
	Community string   `json:"community"`
	People    int      `json:"people"` // of all populations
	Members   int      `json:"members"`
	Seeds     []uint64 `json:"seeds"`
	Ours      Side     `json:"echo_node"`
	Theirs    Side     `json:"twitterecho"`
	// ByProfile is the part of the people that TwitterEcho's method decides without their
	// posts.
	ByProfile float64 `json:"twitterecho_by_profile"`
	// Printed is what the dissertation reports. It judged only the Portuguese, so it is nil for
	// other communities.
	Printed *Figures `json:"dissertation,omitempty"`
}

// Side compares the verdicts of one method with the truth.
type Side struct {
	Counts
	PrecisionIn  float64 `json:"precision_in"`  // the part of "in" that is right
	RecallIn     float64 `json:"recall_in"`     // the part of the members that are "in"
	PrecisionOut float64 `json:"precision_out"` // the part of "out" that is right
	RecallOut    float64 `json:"recall_out"`    // the part of the others that are "out"
	// Calls are requests for posts and neighbours.
	Calls int            `json:"calls"`
	Wrong map[string]int `json:"wrong"` // by class of communitytest
	Open  map[string]int `json:"open"`  // the undecided, by class
}

// Counts are people by verdict.
type Counts struct {
	In               int `json:"in"`
	InRight          int `json:"in_right"`
	Out              int `json:"out"`
	OutRight         int `json:"out_right"`
	Undecided        int `json:"undecided"`
	UndecidedMembers int `json:"undecided_members"`
}

// Figures are what the dissertation reports. It checked some people of each verdict by hand, so
// it has no recall.
type Figures struct {
	Counts
	ByProfile float64 `json:"by_profile"` // the part of the users that the profile decided
}

// Printed returns the dissertation's figures, from the project's notes on it (twitterecho.md).
// The counts are from the section "Figures", item "Nationality". ByProfile is from the section
// "Parts", item "Profile analysis".
func Printed() Figures {
	return Figures{ByProfile: 0.80,
		Counts: Counts{In: 500, InRight: 454, Out: 800, OutRight: 796, Undecided: 500, UndecidedMembers: 60}}
}

// Precision returns the part of each verdict that is right, and the part of the undecided that
// are members.
func (c Counts) Precision() (in, out, undecided float64) {
	return part(c.InRight, c.In), part(c.OutRight, c.Out), part(c.UndecidedMembers, c.Undecided)
}

// Compare lets both methods judge people for whom the truth is known.
func Compare(ctx context.Context, o Options) (*Report, error) {
	if o.People < 10 || o.People > 1e6 || o.Seeds < 1 || o.Seeds > 1000 {
		return nil, fmt.Errorf("%w: people %d (at least 10), seeds %d (at least 1): out of range", ErrOptions, o.People,
			o.Seeds)
	}
	theirs, err := Open(o.Community)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	c, err := community.Embedded(o.Community)
	if err != nil {
		return nil, err
	}
	ours, err := community.Open(c)
	if err != nil {
		return nil, err
	}
	r := &Report{Community: c.Name, Ours: newSide(), Theirs: newSide()}
	if r.Community == portugal {
		printed := Printed()
		r.Printed = &printed
	}
	profiles := 0
	for i := range o.Seeds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		seed := o.Seed + uint64(i)
		w := communitytest.New(communitytest.Options{Seed: seed, People: o.People, Mirror: r.Community != portugal})
		r.Seeds = append(r.Seeds, seed)
		profiles += r.judge(w, ours, theirs)
	}
	r.ByProfile = part(profiles, r.People)
	r.Ours.rates(r)
	r.Theirs.rates(r)
	return r, nil
}

// portugal is the community of communitytest; its mirror image is Brazil.
const portugal = "portugal"

// judge adds the people of w. It returns how many of them TwitterEcho's method decides by the
// profile alone.
func (r *Report) judge(w *communitytest.World, ours *community.Judge, theirs *Judge) (byProfile int) {
	grown, verdicts := communitytest.Grow(ours, w)
	r.Ours.Calls += grown.Calls
	for _, p := range w.People {
		r.People++
		if p.Member {
			r.Members++
		}
		r.Ours.count(p, verdicts[p.Profile.ID].Verdict)
		v := theirs.Judge(p.Profile, nil)
		if v != community.IsUndecided {
			byProfile++
		} else {
			v = theirs.Judge(p.Profile, p.Texts)
			r.Theirs.Calls += (len(p.Texts) + communitytest.PerCall - 1) / communitytest.PerCall
		}
		r.Theirs.count(p, v)
	}
	return byProfile
}

func newSide() Side { return Side{Wrong: map[string]int{}, Open: map[string]int{}} }

func (s *Side) count(p communitytest.Person, verdict string) {
	switch {
	case verdict == community.IsUndecided:
		s.Undecided++
		s.Open[p.Class]++
		if p.Member {
			s.UndecidedMembers++
		}
		return
	case verdict == community.IsIn:
		s.In++
		if p.Member {
			s.InRight++
		}
	case verdict == community.IsOut:
		s.Out++
		if !p.Member {
			s.OutRight++
		}
	}
	if p.Member != (verdict == community.IsIn) {
		s.Wrong[p.Class]++
	}
}

func (s *Side) rates(r *Report) {
	s.PrecisionIn, s.PrecisionOut, _ = s.Precision()
	s.RecallIn, s.RecallOut = part(s.InRight, r.Members), part(s.OutRight, r.People-r.Members)
}

func part(n, of int) float64 { return float64(n) / float64(max(of, 1)) }

// Faults says where our judge is worse than TwitterEcho's method.
func (r *Report) Faults() (faults []error) {
	for _, x := range []struct {
		what         string
		ours, theirs float64
	}{
		{"precision of in", r.Ours.PrecisionIn, r.Theirs.PrecisionIn},
		{"recall of in", r.Ours.RecallIn, r.Theirs.RecallIn},
		{"precision of out", r.Ours.PrecisionOut, r.Theirs.PrecisionOut},
		{"recall of out", r.Ours.RecallOut, r.Theirs.RecallOut},
	} {
		if x.ours < x.theirs {
			faults = append(faults, fmt.Errorf("%s: %s of %s is %.4f, of %s %.4f", r.Community, x.what, Ours, x.ours,
				Theirs, x.theirs))
		}
	}
	return faults
}
