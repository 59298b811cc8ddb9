// Package fetch sends requests to sites, politely and safely. It holds what all sources share: the
// HTTP client, the robots.txt rules (RFC 9309) and the pace of one IP address. It also defines what
// a failure means for the frontier, and the Task and Result that the crawler and its sources
// exchange.
//
// Safety: every dial is checked after DNS. So no request reaches a private address unless
// Options.AllowNet contains it. A proxy from the environment would skip that check, so none is
// used. The client does not follow redirects: a redirect is a response, and its target is an item
// of the frontier. Only for robots.txt does it follow up to five. Every size, time and ratio has a
// limit with a name (Limit…). An error or a Response names the limit that was hit.
//
// Politeness: before Options.Contact is set, the client sends requests only to loopback. The
// frontier keeps the pace of a site. This package keeps the pace of an address, together with other
// peers if Options.Share is set.
//
// The package does not parse pages, keep anything on disk, or decide what is due.
package fetch
