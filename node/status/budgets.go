package status

import (
	"fmt"
	"time"

	"github.com/echo-node/echo-node/crawler/budget"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
)

// budgets returns this peer's rate budgets at servers, as status shows them.
func (b *Board) budgets(now time.Time) (out []api.Budget) {
	for _, s := range b.Social.Budgets() {
		counts := map[string]budget.Count{}
		for _, c := range s.Counts {
			counts[c.Credential] = c
		}
		held := map[string]string{}
		for _, h := range s.Holds {
			class := h.Class
			if class == "" {
				class = "all calls"
			}
			held[h.Credential] = fmt.Sprintf("%s until %s: %s", class, h.Until.Format(time.RFC3339), h.Reason)
		}
		for _, b := range s.Buckets {
			x := api.Budget{Site: partition.Site(s.Site), Credential: b.Credential, Bucket: b.Name, Limit: b.Limit,
				Used: max(0, b.Limit-b.Free), Open: b.Open,
				Window: b.Window.Seconds(), Calls: counts[b.Credential].Calls, Refused: counts[b.Credential].Refused,
				Held: held[b.Credential]}
			// An adaptive bucket only knows whether the next call has room. Its window is not
			// filled up.
			if x.Paced = b.Kind == budget.Adaptive; x.Paced {
				x.Used = b.Open
			}
			if b.Full.After(now) {
				at := b.Full
				x.ResetsAt = &at
			}
			out = append(out, x)
		}
	}
	return out
}

// rejected returns this peer's tokens that a server does not accept.
func (b *Board) rejected() (out []api.Rejected) {
	for _, r := range b.Social.Rejected() {
		out = append(out, api.Rejected(r))
	}
	return out
}

// rounds returns how this peer revisits stored posts.
func (b *Board) rounds() (out []api.Round) {
	for _, r := range b.Social.Rounds() {
		out = append(out, api.Round{Site: r.Site, Keys: r.Keys, Posts: r.Posts, Period: r.Period.Seconds(),
			Late: r.Late})
	}
	return out
}

// roundMetrics returns the rounds as samples for Prometheus.
func roundMetrics(all []api.Round) (out []api.Metric) {
	for _, r := range all {
		gauge := func(name, help string, v float64) {
			out = append(out, api.Metric{Name: name, Help: help, Kind: "gauge", Value: v,
				Labels: map[string]string{"site": string(r.Site)}})
		}
		gauge("echo_round_posts", "Kept posts that are looked at again, of what was visited since the start.",
			float64(r.Posts))
		gauge("echo_round_seconds", "Time in which each of them is looked at once.", r.Period)
		gauge("echo_round_late", "Accounts and timelines whose round takes more than twice its time.",
			float64(r.Late))
	}
	return out
}

// budgetMetrics returns the budgets as samples for Prometheus. The operator chooses the names of
// credentials, so they are no secrets.
func budgetMetrics(all []api.Budget, now time.Time) (out []api.Metric) {
	counted := map[string]bool{}
	for _, b := range all {
		labels := map[string]string{"site": string(b.Site), "credential": b.Credential, "bucket": b.Bucket}
		gauge := func(name, help string, v float64) {
			out = append(out, api.Metric{Name: name, Help: help, Kind: "gauge", Value: v, Labels: labels})
		}
		gauge("echo_budget_limit", "What a limit of a server allows in a window.", float64(b.Limit))
		gauge("echo_budget_used", "What is used of it, calls on their way among that.", float64(b.Used))
		reset := 0.0
		if b.ResetsAt != nil {
			reset = b.ResetsAt.Sub(now).Seconds()
		}
		gauge("echo_budget_resets_seconds", "Until it has more room than now.", reset)
		who := string(b.Site) + " " + b.Credential
		if counted[who] {
			continue
		}
		counted[who] = true
		of := map[string]string{"site": string(b.Site), "credential": b.Credential}
		out = append(out, api.Metric{Name: "echo_budget_calls_total", Help: "Calls made with a credential.",
			Kind: "counter", Value: float64(b.Calls), Labels: of},
			api.Metric{Name: "echo_budget_refused_total", Help: "Calls that the server refused for its limits.",
				Kind: "counter", Value: float64(b.Refused), Labels: of})
	}
	return out
}
