// Package fetch gets bytes from a site, politely and safely. It holds what the
// sources share: the HTTP client, the robots.txt rules (RFC 9309), the pace of
// one IP address, what a failure means for the frontier, and the Task and
// Result that the crawler and its sources exchange.
//
// Safety: every dial is checked after DNS, so no request reaches a private
// address unless Options.AllowNet holds it; no proxy of the environment is
// used, as it would skip that check. Redirects are answers, not followed (a
// redirect is an item of the frontier); those of robots.txt are followed, up
// to five. Every size, time and ratio has a limit with a name (Limit…), and an
// error or a Response says which was hit.
//
// Politeness: nothing but loopback is asked before Options.Contact is set. The
// pace of a site is the frontier's; the pace of an address is kept here, and with
// the peers that share it by Options.Share.
//
// It does not parse pages, keep anything on disk, or decide what is due.
package fetch
