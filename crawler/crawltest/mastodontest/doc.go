// Package mastodontest is a simulated server that speaks Mastodon's REST API,
// with known truth, to read in tests and benches: what crawltest is for pages.
//
// A World is one server and its people. All that happens is drawn from
// Options.Seed and happens at times of Options.Clock: people post at rates
// with a heavy tail and by day more than by night, mention, answer, boost, tag, edit and delete, follow and
// unfollow; some are bots, locked, remote, want not to be indexed, are suspended or move away. Nothing runs on its own:
// whatever has happened by now is worked out when the World is asked, so two Worlds of the same Options that are asked
// at different times tell the same story. Tests may add to it (Post, Edit, Delete, Suspend, Move, Follow).
//
// It answers as Mastodon does: ids, order, paging by max_id, since_id and min_id,
// Link headers, follower lists paged by the id of the follow, limits for address and token with
// their headers. Every way in which real servers differ is a switch in Lies. Truth says what a
// reader should know; Report what the server saw.
package mastodontest
