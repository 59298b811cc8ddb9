// Package community says whether an account belongs to a community, such as the
// Portuguese on a social network, wherever they live.
//
// # A community is data
//
// A Community is a JSON file: countries and regions, languages and the ones that
// are taken for them (rivals), names, key words, hashtags, domains, time zones,
// accounts that are known to belong and that are known not to. The package knows
// no country; portugal and brazil are embedded, and Parse reads one's own.
//
// # The decision
//
// Judge weighs all evidence. Each piece adds its weight, in nats of
// log-likelihood, for (above 0) or against (below 0): place and origin by the
// gazetteer (partition/geo), what language the person writes (focus/lang), names,
// words, declared fields, time zone, domain, the accounts that it follows, is
// followed by and mentions, and whether it is a machine. The sum is tempered so that
// of accounts with score s about the share s belong (calibrated on
// the simulated community of communitytest, not on real accounts: no labelled
// ones are at hand). From In up an account is in, from Out down it is out, between
// them it is undecided and Verdict.Ask says what would be worth asking for.
//
// Overrides win over the judge and are kept in the order in which they were made;
// Mistakes holds them against what the judge says.
//
// # In a crawl
//
// Judge is a function of a profile, some texts and the counts of neighbours
// already judged; it keeps nothing and asks nothing. Verdicts of neighbours change
// as a crawl goes on, so who crawls judges again what is undecided when it has
// learned more: crawler/social does, communitytest.Grow shows the loop.
//
// All is pure and safe for concurrent use.
package community
