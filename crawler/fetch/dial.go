package fetch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"code.dny.dev/ssrf"
)

// names finds and remembers the addresses of hosts. Safe for concurrent use.
type names struct {
	fixed  map[string]netip.Addr
	ttl    time.Duration
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

	mu    sync.Mutex
	cache map[string]named
}

type named struct {
	addrs []netip.Addr
	until time.Time
}

func newNames(o Options) *names {
	fixed := make(map[string]netip.Addr, len(o.Hosts))
	for name, a := range o.Hosts {
		fixed[strings.ToLower(name)] = a.Unmap()
	}
	return &names{fixed: fixed, ttl: o.NameTTL, lookup: net.DefaultResolver.LookupNetIP, cache: map[string]named{}}
}

// known is the address of host if that needs no DNS.
func (n *names) known(host string) (netip.Addr, bool) {
	host = strings.ToLower(strings.Trim(host, "[]"))
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap(), true
	}
	if a, ok := n.fixed[host]; ok {
		return a, true
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") { // RFC 6761 section 6.3
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
	}
	return netip.Addr{}, false
}

// find is the addresses of host, never none without an error.
func (n *names) find(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, ok := n.known(host); ok {
		return []netip.Addr{a}, nil
	}
	host = strings.ToLower(host)
	now := time.Now()
	n.mu.Lock()
	hit, ok := n.cache[host]
	n.mu.Unlock()
	if ok && now.Before(hit.until) {
		return hit.addrs, nil
	}
	addrs, err := n.lookup(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.cache) >= maxNames {
		n.forget(now)
	}
	n.cache[host] = named{addrs, now.Add(n.ttl)}
	return addrs, nil
}

// forget makes room: what has expired, and if that is nothing, half of the rest.
func (n *names) forget(now time.Time) {
	for host, e := range n.cache {
		if now.After(e.until) {
			delete(n.cache, host)
		}
	}
	for host := range n.cache {
		if len(n.cache) < maxNames/2 {
			return
		}
		delete(n.cache, host)
	}
}

// newGuard refuses addresses that are not public and not in o.AllowNet.
func newGuard(o Options) *ssrf.Guardian {
	var v4, v6 []netip.Prefix
	for _, p := range o.AllowNet {
		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
}

// Reachable is ErrPrivate for an address that no dial of c would be let through
// to. A name is judged when it is dialled, after DNS.
func (c *Client) Reachable(a netip.Addr) error {
	if a = a.Unmap(); c.guard.SafeAddr(a) != nil {
		return fmt.Errorf("%w: %s", ErrPrivate, a)
	}
	return nil
}

// dialer connects by the client's own names, guarded after resolution: what is
// checked is the address that is dialled, so a name cannot change in between.
func dialer(o Options, n *names, guard *ssrf.Guardian) func(ctx context.Context, network, addr string) (net.Conn, error) {
	d := &net.Dialer{Timeout: o.Connect, Control: guard.Safe}
	if o.FromAddr.IsValid() {
		d.LocalAddr = &net.TCPAddr{IP: o.FromAddr.AsSlice(), Zone: o.FromAddr.Zone()}
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, fmt.Errorf("dial: %w", err)
		}
		addrs, err := n.find(ctx, host)
		if err != nil {
			return nil, err
		}
		for _, a := range addrs {
			var conn net.Conn
			if conn, err = d.DialContext(ctx, "tcp", net.JoinHostPort(a.String(), port)); err == nil {
				return conn, nil
			}
			if errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork) {
				err = fmt.Errorf("%w: %s is %s", ErrPrivate, host, a)
			}
		}
		return nil, err // of the last address
	}
}

// maxHostsLine is the longest line that ParseHosts reads.
const maxHostsLine = 4 << 10

// ParseHosts reads fixed addresses for Options.Hosts in the form of a hosts
// file: "ADDRESS NAME [NAME…]" a line, # begins a comment. All faults are
// reported at once.
func ParseHosts(r io.Reader) (map[string]netip.Addr, error) {
	hosts := map[string]netip.Addr{}
	var errs []error
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxHostsLine)
	for n := 1; in.Scan(); n++ {
		line, _, _ := strings.Cut(in.Text(), "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		a, err := netip.ParseAddr(words[0])
		if err != nil || len(words) < 2 {
			errs = append(errs, fmt.Errorf("fetch: hosts: line %d: want ADDRESS NAME, not %.80q", n, line))
			continue
		}
		for _, name := range words[1:] {
			hosts[strings.ToLower(name)] = a
		}
	}
	if err := in.Err(); err != nil {
		errs = append(errs, fmt.Errorf("fetch: hosts: %w", err))
	}
	return hosts, errors.Join(errs...)
}
