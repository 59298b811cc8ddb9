package schedule

import "time"

// Recency is how much likelier a post is soon after another one, because people post in clusters.
// It is learned over all timelines of a population. It is in posts per day above an account's own
// rate, by the time since the last visit that found a post. The zero value adds nothing.
type Recency struct {
	posts [recencySteps]float64 // found at visits with a wait in this step
	base  [recencySteps]float64 // expected there from the accounts' rates alone
	days  [recencySteps]float64 // total wait there
}

// The steps double: 0 to 2 minutes, to 4, … to about 17 hours.
const (
	recencySteps = 10
	recencyFirst = 2.0 / 1440
	recencyDoubt = 5.0 // expected posts before a step is used
)

// Learn records a visit. silence is the days from the last visit that found a post to the visit
// before this one, wait the days since that one. posts is the number of posts found now, and rate
// the account's expected posts per day.
func (r *Recency) Learn(silence, wait, rate float64, posts int) {
	if wait <= 0 || silence < 0 {
		return
	}
	i := recencyStep(silence + wait/2)
	if i == recencySteps {
		return
	}
	r.posts[i] += float64(min(posts, 3)) // many posts at once are one cluster
	r.base[i] += rate * wait
	r.days[i] += wait
}

// Extra returns the posts to expect above the account's rate in the tau days after a visit. That
// visit was silence days after the last one that found a post.
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

// recencyStep returns the step that contains days, recencySteps if it is behind the last.
func recencyStep(days float64) int {
	i := 0
	for end := recencyFirst; days > end && i < recencySteps; end *= 2 {
		i++
	}
	return i
}

// Silence returns the days from the last visit that found a change to the last visit. If none did,
// it is the whole observed time.
func (h *History) Silence() float64 {
	var quiet time.Duration
	for i := len(h.runs) - 1; i >= 0; i-- {
		r := h.runs[i]
		if r.Changes > 0 {
			if r.Visits > 1 { // folded: the position of the change is unknown
				quiet += r.Span / time.Duration(r.Visits)
			}
			break
		}
		quiet += r.Span
	}
	return quiet.Hours() / 24
}
