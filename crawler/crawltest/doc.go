// Package crawltest makes worlds with known truth to crawl in tests, benches
// and the demo: what net/http/httptest is to net/http.
//
// A World is a web of many small sites in Portuguese, Spanish and English. It
// is a pure function of its Options: every page is generated from a hash when
// it is asked for, nothing is stored for a page, so a world of millions of
// pages costs what its counters cost. A site is a loopback address of its own
// (127.77.0.1, 127.77.0.2, ... on one port: on Linux all of 127/8 answers
// without setup) or, with Options.Names, a host name of its own,
// Options.Shared of them to an address.
//
// # What is in it
//
//   - articles: a tree from the home page plus random links, of which
//     Options.Cross leave the site; links are written in many forms (absolute,
//     path only, scheme-relative, with a fragment, with dot segments, upper case)
//   - redirects 301 and 302, chains that cross sites, and rings
//   - an area that robots.txt disallows, and in it a calendar without an end
//   - copies: other URLs with the very same bytes
//   - pages that say noindex (fetched, followed, not to be indexed), pages that
//     say nofollow, links that say nofollow
//   - links to pages that are gone (404)
//   - links to addresses that nobody outside may reach: the cloud's metadata
//     address, private networks, loopback in many spellings
//   - with Options.Maze, a path that grows for ever and no robots.txt forbids
//
// # What is true of it
//
// World.Expected is the set of URLs that a correct crawler fetches, exactly
// once each: everything reachable from the seeds through followed links and
// redirects (each hop is a URL of its own), gone pages included, robots.txt
// excluded, nothing disallowed. The calendar is bounded by robots.txt, so it
// has no member in the set. The maze is bounded by nothing but the crawler's
// own budgets, so it never counts as expected or as extra: Report.Maze says how
// much of it was fetched.
//
// Traps are sites of another kind, one trap each: StartTraps.
//
// Every figure in a Report is what the server saw. Clocks are time.Now, so
// inside testing/synctest they are the fake ones; World.Pipe serves a world
// over net.Pipe there, with no socket.
package crawltest
