// Package churn measures a swarm under kills, a cut and a join, beside a naive
// crawler that is given the same ones at the same moments.
//
// Every peer is a process of its own, started by this one, which serves the
// synthetic web and sees every request. A kill is a SIGKILL, a restart opens the
// same data directory. A cut needs no root: each process has a connection gater
// that closes and refuses connections to the peers of the other side. That is a
// cut by refusal; packets that vanish are tested in .ci/hosts.sh.
//
// A process is spoken to by lines of JSON, orders on its standard input and words
// on its standard output (wire.go). It ends when its input does, so none is left
// behind.
//
// # What the figures mean
//
// Each peer makes its requests from a loopback address of its own, so the world
// knows who asked. The world says all but urls_per_page, bytes_per_page and
// contravariance, which are the peers' own counts.
//
//   - coverage: share of the expected pages that were fetched
//   - overlap: (page fetches - pages) / pages (Cho and Garcia-Molina 2002)
//   - urls_per_page, bytes_per_page: links, and bytes of libp2p streams, that
//     peers sent each other, for a page fetched. What a peer sent in the last
//     quarter second before a kill is not counted. For the baseline bytes are the
//     bodies and lines of its HTTP requests
//   - balance: the most slices of a peer, for its capacity, against the mean, at
//     the end; balance_pages: the same with the pages the world saw it fetch
//   - contravariance: share of sampled Keys whose owner changed at the first join
//     and is still another when the join has settled, against 1/(peers + 1), which
//     is ideal. Keys of peers that were killed shortly before or meanwhile do not count
//   - politeness_violations: requests to a site sooner after the one before than
//     the delay less its tolerance (Options.Tolerance), and requests for what robots.txt
//     disallows; min_gap_ms is the smallest gap
//   - links_lost: pages never fetched of which a fetched page, or the seeds, told;
//     what lies behind them is missing from coverage but not counted here
//   - records_lost: pages that were answered with 200 and have no record in the
//     export of the swarm at the end, or one with another page's text
//   - takeover_s: for a kill, the sites which the killed peer was the last to ask
//     and of which a page was known that nobody had fetched yet; the time until such
//     a site is asked again by anybody. takeover_s is the longest over all sites and
//     kills, takeover_median_s the median over sites, takeover_by_others the share of
//     them in which another peer went on, not the killed one after its restart
//   - median_km: over sites with a known place, the distance to the peer that asked
//     it most
package churn
