// Package schedule decides when to visit crawled items again: pages, feeds, profiles, timelines and
// lists, under a budget of visits.
//
// It is pure: no clock, disk or network; time is an argument. An item is a [History], the dated
// outcomes of its visits. One function decides:
//
//	Decide(item, budget, now) → when, and why
//
// The crawl's frontier and the contest of policies (cmd/echo-lab/contest) both use it, so the
// measured code is the running code.
//
// # The default policy
//
// A page whose changes the crawler can only sample has a belief: weights over change rates on a
// doubling grid ([Model], [Belief]). A visit multiplies the weights by the likelihood of its
// result. With time the weights drift back to those of the population. Let p(s) be the probability
// that the copy is still good s after the visit. For freshness, a visit after τ is worth
//
//	G(τ) = ∫₀^τ p(s) − p(τ) ds
//
// This is −dF/d(1/τ) of the mean freshness F = (1/τ)∫₀^τ p. So equal G on all items is the optimum
// of Cho and Garcia-Molina, "Effective page refresh policies for Web crawlers" (TODS 28(4), 2003),
// with the belief in place of their known rate. A second term does the same for age (see [Value]).
// It ensures that no item starves: their optimum abandons items that change too fast, and the model
// never learns about an item without visits. The item is due when its value reaches the budget's
// price. A budget per site adds its own price to the peer's (the multipliers of nested constraints
// add).
//
// An item's first wait is shortened to its Phase (see [Item]). So many new items neither wait for a
// whole interval nor are due all at once.
//
// [Meter] finds the price at which visits meet the budget, and guards age. If the plans would leave
// copies older than uniform visits, it raises the price on age and gives a share of visits to all
// items equally. So the default is the freshest policy that is no older than uniform visits, as
// measured.
//
// Azar and others, "Tractable near-optimal policies for crawling" (PNAS 115(32), 2018), and Kolobov
// and others, "Staying up to date with online content changes" (NeurIPS 2019), use random visit
// times with optimal rates. They price importance and change together. The value function here is
// theirs with fixed intervals, which are fresher at equal visits.
//
// For a timeline, whose page holds a fixed number of posts, the loss is the number of missed posts
// instead ([Timeline]).
//
// # What it does not do
//
// It fetches nothing and has no queue: the frontier orders the due items. It knows a site's
// politeness only by the site's share of visits.
package schedule
