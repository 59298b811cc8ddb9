// Package frontier decides which row a peer fetches next, and when. For each site it holds the time
// of the next allowed request and a short window of the site's rows.
//
// The package is pure: no clock, no disk, no network, no goroutine. Time is an argument, and the
// caller passes the rows in. So a run can be written as a transcript (testdata/*.txt) and replayed.
//
// It guarantees:
//
//   - One request per site at a time: between the Fetch step for a site and its Done, no other step
//     names the site.
//   - Never early: a Fetch step comes at or after the site's next-allowed time (I7).
//   - No row is lost: every row comes out if the caller answers every Read step from the store and
//     calls Wake for rows added later.
//   - Fair: ready sites are served in the order in which they became ready. A row of priority p
//     counts as p seconds late. So a site of last priority waits at most 255 s longer than one of
//     first priority, and no site starves.
//
// The store keeps the rows in the order in which they are read. The frontier holds only a window of
// each active site: at most Options.MaxRows rows in all. It uses about 200 bytes for each site with
// rows. It does not know what a row means, whether a fetch succeeded, or what the volunteer allows.
package frontier
