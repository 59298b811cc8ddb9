package schedule

import "time"

// Recency is how much likelier a post is soon after another: people post in
// sittings. It is learned over all timelines of a population, as posts per day on
// top of an account's own rate, by the time since the last visit that saw a post. The
// zero value knows nothing and adds nothing.
type Recency struct {
	posts [recencySteps]float64 // seen at visits whose wait lay in this step
	base  [recencySteps]float64 // expected there from the accounts' rates alone
	days  [recencySteps]float64 // waited there
}

// The steps double: 0 to 2 minutes, to 4, … to about 17 hours.
const (
	recencySteps = 10
	recencyFirst = 2.0 / 1440
	recencyDoubt = 5.0 // posts' worth of expectation before a step is believed
)

// Learn takes in a visit: silence is the days from the last visit that saw a post
// to the visit before this one, wait the days since that one; posts were seen now,
// and rate is what was expected of the account per day.
func (r *Recency) Learn(silence, wait, rate float64, posts int) {
	if wait <= 0 || silence < 0 {
		return
	}
	i := recencyStep(silence + wait/2)
	if i == recencySteps {
		return
	}
	r.posts[i] += float64(min(posts, 3)) // a flood is one sitting
	r.base[i] += rate * wait
	r.days[i] += wait
}

// Extra is the posts to expect beyond the account's rate in the days tau after a
// visit that came silence days after the last one that saw a post.
func (r *Recency) Extra(silence, tau float64) float64 {
	sum := 0.0
	from, end := 0.0, recencyFirst
	for i := range recencySteps {
		lo, hi := max(from, silence), min(end, silence+tau)
		if hi > lo && r.days[i] > 0 {
			if more := r.posts[i] - r.base[i] - recencyDoubt; more > 0 {
				sum += more / r.days[i] * (hi - lo)
			}
		}
		from, end = end, 2*end
	}
	return sum
}

func recencyStep(days float64) int {
	i := 0
	for end := recencyFirst; days > end && i < recencySteps; end *= 2 {
		i++
	}
	return i
}

// Silence is the days from the last visit that found a change to the last visit;
// the whole time watched if none did.
func (h *History) Silence() float64 {
	var quiet time.Duration
	for i := len(h.runs) - 1; i >= 0; i-- {
		r := h.runs[i]
		if r.Changes > 0 {
			if r.Visits > 1 { // folded: nobody knows when in it
				quiet += r.Span / time.Duration(r.Visits)
			}
			break
		}
		quiet += r.Span
	}
	return quiet.Hours() / 24
}
