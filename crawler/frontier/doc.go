// Package frontier decides what is fetched next, and when: one peer's sites,
// each with the moment it may be asked again and a short window of its rows.
//
// It is pure: no clock, no disk, no network, no goroutine. Time is an argument
// and rows are handed in, so a run of it can be written down as a transcript
// (testdata/*.txt) and replayed.
//
// What it promises:
//
//   - One request of a site at a time: between the Fetch step that names a site
//     and the Done of it, no other step names it.
//   - Never early: a Fetch step comes at or after the site's next-allowed time (I7).
//   - Nothing forgotten: as long as its caller answers every Read step from the
//     store and calls Wake for rows admitted later, every row comes out.
//   - Fair: ready sites are served in the order they became ready, a row of
//     priority p counting as p seconds late. So a site of last priority waits at
//     most 255 s longer than one of first priority, and nobody starves.
//
// The store keeps the rows in the order they will be read; the frontier holds
// only a window of each active site, at most Options.MaxRows in all, and about
// 200 bytes for each site with rows. It does not know what a row means, whether
// a fetch succeeded, or what the volunteer allows.
package frontier
