// Package crawltest generates worlds to crawl in tests, benchmarks and the demo. The truth about a
// world is known. The package is to the crawler what net/http/httptest is to net/http.
//
// A World is a web of many small sites in Portuguese, Spanish and English. It is a pure function of
// its Options. Every page is generated from a hash when it is requested, and no page is stored. So
// a world of millions of pages needs only the memory of its counters. Each site has its own
// loopback address (127.77.0.1, 127.77.0.2, ... on one port). On Linux all of 127/8 works without
// setup. With Options.Names a site has its own host name instead, and Options.Shared sites share an
// address.
//
// # Content
//
//   - articles: a tree from the home page plus random links. Options.Cross is the share of these
//     that leave the site. Links have many forms: absolute, path only, scheme-relative, with a
//     fragment, with dot segments, upper case
//   - redirects 301 and 302, chains that cross sites, and rings
//   - an area that robots.txt disallows, and a disallowed calendar without an end
//   - copies: other URLs with exactly the same bytes
//   - pages with noindex (fetched and followed, but not indexed), pages with nofollow, and links
//     with nofollow
//   - links to pages that are gone (404)
//   - links to addresses that an outside crawler must not reach: the cloud's metadata address,
//     private networks, loopback in many spellings
//   - with Options.Maze, a path that grows without an end and that no robots.txt forbids
//
// # Truth
//
// World.Expected is the set of URLs that a correct crawler fetches, each exactly once. It holds
// everything that is reachable from the seeds through followed links and redirects. Each redirect
// hop is a URL of its own. Pages that are gone are included; robots.txt and disallowed pages are
// not. robots.txt disallows the calendar, so the set has no calendar page. Only the crawler's own
// budgets limit the maze, so a maze page is neither expected nor extra. Report.Maze is the number
// of maze pages that were fetched.
//
// Traps are sites of another kind, with one trap each: see StartTraps.
//
// Every number in a Report is what the server measured. Clocks are time.Now, so inside
// testing/synctest they are the fake ones. There, World.Pipe serves a world over net.Pipe, without
// a socket.
package crawltest
