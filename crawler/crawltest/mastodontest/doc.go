// Package mastodontest simulates a server that speaks Mastodon's REST API, for tests and
// benchmarks. The truth about it is known. It is to social services what crawltest is to pages.
//
// A World is one server and its people. All events are drawn from Options.Seed and happen at times
// of Options.Clock. People post at rates with a heavy tail, and more by day than by night. They
// mention, answer, boost, tag, edit and delete posts, follow and unfollow. Some are bots, locked or
// remote, do not want to be indexed, are suspended or move away. Nothing runs in the background: a
// request first computes all events up to now. So two Worlds with the same Options have the same
// events, whenever they are read. Tests may add events (Post, Edit, Delete, Suspend, Move, Follow).
//
// The World answers as Mastodon does: IDs, order, paging by max_id, since_id and min_id, and Link
// headers. Follower lists are paged by the ID of the follow. Limits per address and per token have
// Mastodon's headers. Each way in which real servers differ is a switch in Lies. Truth returns what
// a reader should know; Report returns what the server measured.
package mastodontest
