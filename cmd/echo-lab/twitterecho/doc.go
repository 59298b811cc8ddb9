// Package twitterecho has two methods of the dissertation on TwitterEcho, as baselines for
// echo-node's judges. The dissertation is E. J. S. L. de Oliveira, "TwitterEcho" (MSc, FEUP,
// 2011).
//
// # Language
//
// [Params.Language] distinguishes Portuguese from other languages, and Portugal from Brazil. It
// compares the frequency of letters in posts with a profile, and then looks for evidence of
// Brazil. The dissertation does not give its list of Brazilian words and its thresholds, so
// these are ours. "echo-lab train-lang" fits the profile and the thresholds, and fitted.json
// holds them. Counting that evidence per 1,000 words is also ours.
//
// # Members
//
// [Judge] distinguishes members of a community from others. It compares the location, the time
// zone and the name of a profile with lists. One test says "is" and one says "is not". If only
// one of them is positive, it decides. Otherwise the account is undecided, and the language of
// its posts decides. The dissertation's own lists had 192 places inside, 187 places outside and
// 309 names. Ours are shorter: places.json has the places, and the community of package community has
// the names and the time zones.
//
// # Comparison
//
// [Compare] lets [Judge] and the judge of package community judge the same people. communitytest knows the
// truth about them. [Printed] returns the figures that the dissertation reports for its own
// method.
package twitterecho
