// Package storytest is the common part of the simulated services for tests and benchmarks
// (crawler/crawltest/mastodontest, blueskytest, twittertest). It provides people with known data,
// exact request limits, and the form of responses.
//
// All events of a Story are drawn from Options.Seed and happen at times of Options.Clock. People
// post at rates with a heavy tail, and more by day than by night. They mention, answer, boost, tag,
// edit and delete posts, follow and unfollow. Some are bots, are suspended or move away. Nothing
// runs in the background: Advance computes all events up to now. So two Stories with the same
// Options have the same events, whenever they are read.
package storytest
