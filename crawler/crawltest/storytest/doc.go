// Package storytest is what the simulated services of tests and benches have in
// common (crawler/crawltest/mastodontest, blueskytest, twittertest): people of whom everything is
// known, limits on requests that are exact, and what answers look like.
//
// All that happens in a Story is drawn from Options.Seed and happens at times of Options.Clock: people
// post at rates with a heavy tail and by day more than by night, mention, answer, boost,
// tag, edit and delete, follow and unfollow; some are bots, suspended or move away. Nothing runs on its
// own: whatever has happened by now is worked out when it is asked for, so two Stories of the same
// Options that are asked at different times tell the same.
package storytest
