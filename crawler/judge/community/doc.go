// Package community judges whether an account belongs to a community, such as the Portuguese on a
// social network, wherever they live.
//
// # A community is data
//
// A Community is a JSON file. It lists countries and regions, languages, names, key words,
// hashtags, domains and time zones. It also lists rivals, which are languages that are mistaken for
// the community's, and accounts that are known to belong or not to belong. The package knows no
// country. The files portugal and brazil are embedded, and Parse reads a user's own file.
//
// # The decision
//
// Judge weighs all evidence. Each piece adds its weight, in nats of log-likelihood, for (above 0)
// or against (below 0). The evidence from the profile is place and origin by the gazetteer
// (partition/geo), names, words, declared fields, time zone and domain. The evidence from the texts
// is the language that the person writes (crawler/judge/lang), hashtags, and whether the account is
// a machine. The last kind is the accounts that it follows, is followed by and mentions.
//
// The sum is tempered, so that about the share s of the accounts with score s belongs. It was
// calibrated on the simulated community of communitytest, because no labelled real accounts are
// available. With a score of In or more an account is in, with Out or less it is out. Between them
// it is undecided, and Verdict.Ask lists the data that is worth fetching.
//
// Overrides win over the judge and are kept in the order in which they were made. Mistakes compares
// them with the judge's verdicts.
//
// # In a crawl
//
// Judge is a function of a profile, some texts and the counts of neighbours already judged. It
// keeps no state and fetches nothing. The verdicts of neighbours change during a crawl. So a
// crawler judges undecided accounts again when it knows more: crawler/social does, and
// communitytest.Grow shows the loop.
//
// Everything is pure and safe for concurrent use, except Overrides.
package community
