package social

import (
	"math"
	"slices"

	"github.com/echo-node/echo-node/cmd/echo-lab/contest"
)

// Row is a row of the table.
type Row struct {
	Gap      string  `json:"gap_up_to"`
	Accounts float64 `json:"accounts"` // with a post that counts
	Posts    float64 `json:"posts"`    // posts that count
	Coverage float64 `json:"coverage"` // share of them that is fetched
	Mean     float64 `json:"mean"`     // mean of the accounts' shares
}

// Result is the result of a play; for several seeds, the mean.
type Result struct {
	Policy string  `json:"policy"`
	Times  float64 `json:"times_b"` // of the budget B
	// number of peers that share the budget and the accounts
	Peers     int     `json:"peers"`
	Budget    float64 `json:"budget_calls"`   // per day, of all peers together
	Calls     float64 `json:"calls"`          // calls made
	Timelines float64 `json:"timeline_calls"` // of these calls
	Coverage  float64 `json:"coverage_posts"`
	// half width of the 95 % interval, with several seeds
	Half      float64 `json:"coverage_posts_half,omitempty"`
	Mean      float64 `json:"coverage_mean_account"`
	Limit     float64 `json:"limit"`          // coverage that no policy can exceed
	Median    float64 `json:"delay_median_h"` // from a post to its fetch; -1 = never
	P90       float64 `json:"delay_p90_h"`
	OverLimit int     `json:"over_limit_calls"`
	Used      float64 `json:"allowance_used"`
	Rows      []Row   `json:"classes"`
}

// Judge counts what was fetched.
func (p *Play) Judge() Result {
	r := Result{Policy: p.Policy, Peers: p.Peers, Budget: p.Budget * float64(p.Peers), Limit: p.Limit()}
	allowed := 0.0
	for _, s := range p.servers {
		r.Calls, r.Timelines, r.OverLimit = r.Calls+float64(s.calls), r.Timelines+float64(s.timelines),
			r.OverLimit+s.overLimit
		allowed += p.Budget * float64(p.world.end-p.world.start) / perDay
	}
	r.Used = r.Calls / allowed
	var had, posted, mean, people [contest.EchoRows + 1]float64
	for _, at := range p.world.moments() {
		for i := range p.had {
			from, to := p.world.judged(int32(i), at)
			if from == to {
				continue
			}
			got := p.count(i, from, to, at)
			row := p.world.rows[i]
			had[row], posted[row] = had[row]+got, posted[row]+float64(to-from)
			mean[row], people[row] = mean[row]+got/float64(to-from), people[row]+1
		}
	}
	share := func(a, b float64) float64 { return a / max(b, 1) }
	var all [4]float64
	for row := range had {
		all[0], all[1], all[2], all[3] = all[0]+had[row], all[1]+posted[row], all[2]+mean[row], all[3]+people[row]
		if row < contest.EchoRows {
			r.Rows = append(r.Rows, Row{Gap: Paper()[row].Gap, Accounts: people[row] / checks,
				Posts:    posted[row] / checks,
				Coverage: share(had[row], posted[row]), Mean: share(mean[row], people[row])})
		}
	}
	r.Coverage, r.Mean = share(all[0], all[1]), share(all[2], all[3])
	r.Median, r.P90 = p.delays()
	return r
}

// count returns how many of the posts from to to of account i had been fetched at the moment
// at.
func (p *Play) count(i, from, to int, at int64) (n float64) {
	by := int32(at - p.world.start + 1)
	for _, h := range p.had[i][from:to] {
		if h != 0 && h <= by {
			n++
		}
	}
	return n
}

// delays returns the median and the 90th percentile of the hours until a post was fetched. A
// post never fetched waits for ever.
func (p *Play) delays() (median, p90 float64) {
	var all []int32
	at := p.world.moments()[checks-1]
	for i := range p.had {
		from, to := p.world.judged(int32(i), at)
		for k := from; k < to; k++ {
			delay := int32(math.MaxInt32)
			if h := p.had[i][k]; h != 0 {
				delay = int32(int64(h) + p.world.start - p.world.posts[i][k])
			}
			all = append(all, delay)
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		return -1, -1
	}
	hours := func(q float64) float64 {
		if d := all[int(q*float64(len(all)-1))]; d < math.MaxInt32 {
			return float64(d) / 3600
		}
		return -1
	}
	return hours(0.5), hours(0.9)
}

// Limit returns the coverage that no policy can exceed with the calls of the play, even if it
// knows the future: see the package comment.
func (p *Play) Limit() float64 {
	bound, total := 0.0, 0.0
	for _, at := range p.world.moments() {
		gap := perDay / p.Budget
		made := math.Floor(float64(at-p.world.start)/gap + 0.5) // by each peer, the last at
		last := int64(float64(p.world.start) + gap*(made-0.5))
		calls := made * float64(p.Peers)
		var many []int
		few, posted := 0, 0
		for i := range p.had {
			from, to := p.world.judged(int32(i), at)
			posted += to - from
			n := min(to, p.world.until(int32(i), last)) - from
			if n <= 0 {
				continue
			}
			if n > batch {
				many = append(many, n)
			} else {
				few += n
			}
		}
		slices.Sort(many)
		got := 0.0
		for _, n := range slices.Backward(many) {
			part := min(1, max(0, calls))
			got, calls = got+part*float64(n), calls-part
		}
		got += min(float64(few), max(0, calls)*batch)
		bound, total = bound+got, total+float64(posted)
	}
	return bound / max(total, 1)
}
