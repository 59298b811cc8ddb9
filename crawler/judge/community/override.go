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

// Override is a verdict made by a person. It wins over the judge until a later Override of the same
// account. An empty Verdict cancels the earlier ones.
type Override struct {
	ID      string    `json:"id"`
	Verdict string    `json:"verdict"` // in, out, undecided, or "" = use the judge's again
	By      string    `json:"by"`      // the person who made it
	Why     string    `json:"why,omitempty"`
	At      time.Time `json:"at"`
}

// ErrOverride is wrapped by the errors for an invalid Override.
var ErrOverride = errors.New("not an override")

// Overrides is the log of all overrides ever made, in order. The zero value has none. It is not
// safe for concurrent use while Add is called.
type Overrides struct {
	log []Override
	now map[string]Override
}

// Add adds one override to the log. By is required, because an override is a person's decision.
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

// Log returns a copy of all overrides in the order in which they were made.
func (o *Overrides) Log() []Override { return slices.Clone(o.log) }

// ReadOverrides reads a log: one Override as JSON per line.
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

// Apply returns v, unless there is an override for id. Then it returns the override's verdict, with
// the judge's evidence after the override.
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

// Mistake is an account for which the judge contradicts an override.
type Mistake struct {
	Override Override `json:"override"`
	Judged   Verdict  `json:"judged"`
}

// Report compares the judge with the overrides.
type Report struct {
	Overrides int       `json:"overrides"` // overrides in force, of judged accounts
	Agreed    int       `json:"agreed"`
	Undecided int       `json:"undecided"` // the judge is undecided, and the override is not
	Mistakes  []Mistake `json:"mistakes"`  // by id
	// Kinds is, for each kind of evidence, the sum of nats with which it supported the mistakes. It
	// shows what to check first.
	Kinds map[string]float64 `json:"kinds"`
}

// Mistakes compares the overrides with the judge's verdicts of the same accounts. Accounts that
// were not judged are left out.
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
