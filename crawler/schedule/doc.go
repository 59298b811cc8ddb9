// Package schedule decides when to look again at what was crawled before:
// pages, feeds, profiles, timelines and lists, under a budget of visits.
//
// It is pure: no clock, disk or network; time is an argument. One item is one
// [History], the dated outcomes of its visits. One function decides:
//
//	Decide(item, budget, now) → when, and why
//
// and the same decision serves the crawl's frontier and the contest of
// policies (cmd/echo-lab/contest), so what is measured is what runs.
//
// # The default policy
//
// A page whose changes the crawler can only sample has a belief: weights over
// change rates on a doubling grid ([Model], [Belief]). A visit multiplies in
// the likelihood of what it saw; time lets the weights drift back to what the
// population does. With p(s), the chance that the copy is still good s after
// the visit, a visit after τ is worth
//
//	G(τ) = ∫₀^τ p(s) − p(τ) ds
//
// for freshness: it is −dF/d(1/τ) of the mean freshness F = (1/τ)∫₀^τ p, so
// equal G on all items is the optimum of Cho and Garcia-Molina, "Effective page
// refresh policies for Web crawlers" (TODS 28(4), 2003), with their known rate
// replaced by the belief. A second term does the same for age (see [Value]), so
// that no item starves: their freshness optimum abandons what changes too fast, and
// what is never looked at is never learned. The item is due when its value reaches
// the budget's price. A budget per site adds its own price to the peer's (the
// multipliers of nested constraints add).
//
// An item's first wait is cut to its Phase (see [Item]), so that a bulk of new items is neither left
// alone for an interval nor due all at once after it.
//
// [Meter] finds the price at which visits meet the budget, and guards age: while
// the plans made are expected to leave copies older than uniform visiting would, it
// raises the price on age and gives a share of visits to all items alike. So the
// default is the freshest policy that is no older than uniform, as measured.
//
// Azar and others, "Tractable near-optimal policies for crawling" (PNAS 115(32),
// 2018), and Kolobov and others, "Staying up to date with online content changes"
// (NeurIPS 2019), visit at random times of optimal rates, and price importance and
// change in one; the value function here is theirs with fixed intervals, which are
// fresher at equal visits.
//
// For a timeline, whose page holds so many posts, the loss is posts missed
// instead ([Timeline]).
//
// # What it does not do
//
// It fetches nothing and keeps no queue: the frontier orders what is due. It
// does not know sites' politeness beyond their share of visits.
package schedule
