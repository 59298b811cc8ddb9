package community

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Override is a verdict by hand. It wins over the judge until a later one of the
// same account; an empty Verdict takes those before it back.
type Override struct {
	ID      string    `json:"id"`
	Verdict string    `json:"verdict"` // in, out, undecided, or "" = the judge's again
	By      string    `json:"by"`      // who said so
	Why     string    `json:"why,omitempty"`
	At      time.Time `json:"at"`
}

// ErrOverride is wrapped by what is wrong with an Override.
var ErrOverride = errors.New("not an override")

// Overrides are all that were ever made, in order: the log. The zero value has
// none. Not safe for concurrent use while Add is called.
type Overrides struct {
	log []Override
	now map[string]Override
}

// Add logs one more override. Who made it is required: it is somebody's word.
func (o *Overrides) Add(x Override) error {
	switch {
	case x.ID == "" || x.By == "":
		return fmt.Errorf("%w: neither id nor by may be empty", ErrOverride)
	case !slices.Contains([]string{"", IsIn, IsOut, IsUndecided}, x.Verdict):
		return fmt.Errorf("%w: verdict %q is not in, out, undecided or empty", ErrOverride, x.Verdict)
	}
	if o.now == nil {
		o.now = map[string]Override{}
	}
	o.log = append(o.log, x)
	if o.now[x.ID] = x; x.Verdict == "" {
		delete(o.now, x.ID)
	}
	return nil
}

// Log is a copy of all overrides in the order in which they were made.
func (o *Overrides) Log() []Override { return slices.Clone(o.log) }

// ReadOverrides reads a log: one Override as JSON a line.
func ReadOverrides(r io.Reader) (*Overrides, error) {
	o := &Overrides{}
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 4096), 64<<10)
	for n := 1; sc.Scan(); n++ {
		if len(sc.Bytes()) == 0 {
			continue
		}
		var x Override
		if err := json.Unmarshal(sc.Bytes(), &x); err != nil {
			return nil, fmt.Errorf("line %d: %w: %w", n, ErrOverride, err)
		}
		if err := o.Add(x); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return o, sc.Err()
}

// Apply is v, unless there is an override for id: then that, with what the judge
// found as further evidence.
func (o *Overrides) Apply(id string, v Verdict) Verdict {
	x, ok := o.now[id]
	if !ok {
		return v
	}
	said := Evidence{Kind: "override", Text: clip("by "+x.By+": "+x.Why, 120)}
	out := Verdict{Verdict: x.Verdict, Score: v.Score, Evidence: append([]Evidence{said}, v.Evidence...)}
	switch x.Verdict {
	case IsIn:
		out.Score = 1
	case IsOut:
		out.Score = 0
	}
	return out
}

// Mistake is an account of which the judge says the contrary of an override.
type Mistake struct {
	Override Override `json:"override"`
	Judged   Verdict  `json:"judged"`
}

// Report is how the judge stands against the overrides.
type Report struct {
	Overrides int       `json:"overrides"` // that hold now
	Agreed    int       `json:"agreed"`
	Undecided int       `json:"undecided"` // the judge could not tell, and the override does
	Mistakes  []Mistake `json:"mistakes"`  // by id
	// Kinds is for each kind of evidence the nats by which it spoke for the
	// mistakes: what to look at first.
	Kinds map[string]float64 `json:"kinds"`
}

// Mistakes holds the overrides against what the judge says of the same accounts.
// An account that was not judged is left out.
func (o *Overrides) Mistakes(judged map[string]Verdict) Report {
	r := Report{Mistakes: []Mistake{}, Kinds: map[string]float64{}}
	for _, id := range slices.Sorted(maps.Keys(o.now)) {
		x := o.now[id]
		v, ok := judged[id]
		if !ok {
			continue
		}
		r.Overrides++
		switch {
		case v.Verdict == x.Verdict:
			r.Agreed++
		case v.Verdict == IsUndecided:
			r.Undecided++
		case x.Verdict != IsUndecided:
			r.Mistakes = append(r.Mistakes, Mistake{x, v})
			for _, e := range v.Evidence {
				if (e.Weight > 0) == (v.Verdict == IsIn) {
					r.Kinds[e.Kind] = round(r.Kinds[e.Kind] + max(e.Weight, -e.Weight))
				}
			}
		}
	}
	return r
}
