// Package churn measures a swarm under kills, a cut and a join. It runs a naive crawler under
// the same events at the same moments for comparison.
//
// Every peer is a separate process. This process starts it, serves the synthetic web and sees
// every request. A kill is a SIGKILL; a restart opens the same data directory. A cut needs no
// root: each process has a connection gater that closes and refuses connections to the peers of
// the other side. That is a cut by refusal; .ci/hosts.sh tests lost packets.
//
// Processes exchange lines of JSON: orders on their standard input and words on their standard
// output (wire.go). A process ends when its input does, so none is left behind.
//
// # The figures
//
// Each peer sends its requests from its own loopback address, so the test web knows which peer
// sent a request. All figures come from the test web, except urls_per_page, bytes_per_page and
// contravariance, which the peers count.
//
//   - coverage: share of the expected pages that were fetched
//   - overlap: (page fetches - pages) / pages (Cho and Garcia-Molina 2002)
//   - urls_per_page, bytes_per_page: links, and bytes of libp2p streams, that peers sent each
//     other, per fetched page. What a peer sent in the last quarter second before a kill is not
//     counted. For the baseline, bytes are the bodies and lines of its HTTP requests
//   - balance: the most slices of a peer, for its capacity, compared with the mean, at the end;
//     balance_pages: the same with the pages that the test web saw it fetch
//   - contravariance: share of sampled Keys whose owner changed at the first join and stays
//     changed when the join has settled. The ideal share is 1/(peers + 1). Keys of peers that
//     were killed shortly before or meanwhile do not count
//   - politeness_violations: requests to a site sooner after the previous one than the delay
//     minus its tolerance (Options.Tolerance), and requests that robots.txt disallows;
//     min_gap_ms is the smallest gap
//   - links_lost: pages never fetched to which a fetched page, or the seeds, linked. Pages
//     behind them are missing from coverage but not counted here
//   - records_lost: pages with status 200 that have no record in the export of the swarm at the
//     end, or one with another page's text
//   - takeover_s: for a kill, the sites that the killed peer was the last to ask, and of which
//     a known page was not fetched yet. The time is until any peer asks such a site again.
//     takeover_s is the longest over all sites and kills, takeover_median_s the median over
//     sites. takeover_by_others is the share of them in which another peer continued, not the
//     killed one after its restart
//   - median_km: over sites with a known place, the distance to the peer that asked it most
package churn
