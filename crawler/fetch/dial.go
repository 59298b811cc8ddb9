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
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// names resolves host names and caches the addresses. It is safe for concurrent use.
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

// known returns the address of host if that needs no DNS.
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

// find returns the addresses of host: at least one, or an error.
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

// forget makes room in the cache: it removes what has expired, then entries until half of maxNames
// is left. The caller holds n.mu.
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

// newGuard returns a guard that refuses addresses that are neither public nor in o.AllowNet.
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

// Reachable returns ErrPrivate for an address that the guard refuses. A name is checked when it is
// dialled, after DNS.
func (c *Client) Reachable(a netip.Addr) error {
	if a = a.Unmap(); c.guard.SafeAddr(a) != nil || c.tunnels(a) {
		return fmt.Errorf("%w: %s", ErrPrivate, a)
	}
	return nil
}

// tunnels reports whether a is an IPv6 address through which a router reaches a non-public IPv4
// address (ISATAP, RFC 5214). Such addresses lie among the public addresses of the internet, unlike
// the other kinds. The guard refuses all of 6to4, Teredo and NAT64.
func (c *Client) tunnels(a netip.Addr) bool {
	b := a.As16()
	if a.Is4() || b[8]&^2 != 0 || b[9] != 0 || b[10] != 0x5e || b[11] != 0xfe {
		return false
	}
	for _, p := range c.o.AllowNet {
		if p.Contains(a) {
			return false
		}
	}
	return c.guard.SafeAddr(netip.AddrFrom4([4]byte(b[12:]))) != nil
}

// turnOf is the context key for the address whose turn the request took.
type turnOf struct{}

// dial resolves names by c.names and checks the address that it dials, after resolution. So a name
// cannot change between check and dial. No address is dialled without its turn. A request that took
// a turn dials only that address. Any other dial tries the addresses of the name one after the
// other, each when its turn comes.
func (c *Client) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	host, port, err := splitPort(addr)
	if err != nil {
		return nil, err
	}
	if err := c.Port(port); err != nil {
		return nil, err
	}
	if a, ok := ctx.Value(turnOf{}).(netip.Addr); ok {
		return c.connect(ctx, host, netip.AddrPortFrom(a, port))
	}
	addrs, err := c.names.find(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range c.order(addrs, port) {
		var conn net.Conn
		if conn, err = c.connectInTurn(ctx, host, netip.AddrPortFrom(a, port)); err == nil {
			return conn, nil
		}
		var busy *BusyError
		if errors.As(err, &busy) || ctx.Err() != nil {
			break // wait for this address's turn; a retry waits for it too
		}
	}
	return nil, err // from the last address
}

// dialCounted is dial for the transport of requests: it counts the received bytes.
func (c *Client) dialCounted(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := c.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if t, ok := conn.(*net.TCPConn); ok {
		if err := t.SetReadBuffer(recvBuffer); err != nil {
			_ = conn.Close() // nothing was sent
			return nil, fmt.Errorf("dial: %w", err)
		}
	}
	return newWireConn(conn), nil
}

// connectInTurn waits for the turn of ap, at most Options.Connect, and dials it.
func (c *Client) connectInTurn(ctx context.Context, host string, ap netip.AddrPort) (net.Conn, error) {
	a := ap.Addr()
	gap := c.connGap(a)
	// the guard refuses an unreachable address; that needs no turn
	if gap <= 0 || c.Reachable(a) != nil {
		return c.connect(ctx, host, ap)
	}
	until := time.Now().Add(c.o.Connect)
	for {
		again, before := c.paces.turn(a, net.JoinHostPort(host, "dial"), gap, time.Now())
		if again.IsZero() {
			conn, err := c.connectBy(ctx, host, ap, before)
			c.paces.answered(a, Visit{}, time.Now())
			return conn, err
		}
		if again.After(until) {
			return nil, &BusyError{again}
		}
		if err := Sleep(ctx, max(time.Until(again), time.Millisecond)); err != nil {
			return nil, err
		}
	}
}

// connectBy is connect with the deadline until, at which the turn ends. Zero means no deadline.
func (c *Client) connectBy(ctx context.Context, host string, ap netip.AddrPort, until time.Time) (net.Conn, error) {
	if until.IsZero() {
		return c.connect(ctx, host, ap)
	}
	ctx, stop := context.WithDeadlineCause(ctx, until, &BusyError{until})
	defer stop()
	conn, err := c.connect(ctx, host, ap)
	if err != nil {
		return nil, cause(ctx, err)
	}
	if !Before(time.Now(), until) {
		_ = conn.Close() // too late
		return nil, &BusyError{until}
	}
	return conn, nil
}

// connect dials one address and remembers whether a server accepted.
func (c *Client) connect(ctx context.Context, host string, ap netip.AddrPort) (net.Conn, error) {
	d := &net.Dialer{Timeout: c.o.Connect, Control: func(network, address string, raw syscall.RawConn) error {
		if err := c.guard.Safe(network, address, raw); err != nil {
			return err
		}
		return c.Reachable(ap.Addr())
	}}
	if from := c.o.FromAddr; from.IsValid() {
		d.LocalAddr = &net.TCPAddr{IP: from.AsSlice(), Zone: from.Zone()}
	}
	conn, err := d.DialContext(ctx, "tcp", ap.String())
	switch {
	case err == nil:
		c.dead.forget(ap)
	case errors.Is(err, ErrPrivate), errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedNetwork):
		err = fmt.Errorf("%w: %s is %s", ErrPrivate, host, ap.Addr())
	case ctx.Err() == nil:
		c.dead.add(ap, time.Now())
	}
	return conn, err
}

// order returns the addresses of a name in the order in which they are tried, at most maxDials.
// Addresses come first if the guard allows them and their last dial did not fail.
func (c *Client) order(addrs []netip.Addr, port uint16) []netip.Addr {
	first := make([]netip.Addr, 0, len(addrs))
	var rest []netip.Addr
	now := time.Now()
	for _, a := range addrs {
		if c.alive(netip.AddrPortFrom(a, port), now) {
			first = append(first, a)
		} else {
			rest = append(rest, a)
		}
	}
	all := append(first, rest...)
	return all[:min(len(all), maxDials)]
}

// alive reports whether a dial of ap may succeed.
func (c *Client) alive(ap netip.AddrPort, now time.Time) bool {
	a := ap.Addr()
	if from := c.o.FromAddr; from.IsValid() && from.Is4() != a.Is4() {
		return false
	}
	return !c.dead.has(ap, now) && (c.o.Transport != nil || c.Reachable(a) == nil)
}

// connGap returns the least gap between two connections to a.
func (c *Client) connGap(a netip.Addr) time.Duration {
	if c.o.AddrDelay >= 0 {
		return c.AddrGap(a)
	}
	if c.o.DialDelay == 0 && !a.IsLoopback() {
		return time.Second
	}
	return c.o.DialDelay
}

// graves holds the addresses where a dial failed during the last deadFor. It is safe for concurrent
// use.
type graves struct {
	mu    sync.Mutex
	until map[netip.AddrPort]time.Time
}

// add records a failed dial. If there are too many, it first drops expired entries and about half
// of the rest.
func (g *graves) add(ap netip.AddrPort, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.until) >= maxDead {
		for old, until := range g.until {
			if len(g.until) > maxDead/2 || !now.Before(until) {
				delete(g.until, old)
			}
		}
	}
	g.until[ap] = now.Add(deadFor)
}

func (g *graves) has(ap netip.AddrPort, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return now.Before(g.until[ap])
}

func (g *graves) forget(ap netip.AddrPort) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.until, ap)
}

func remote(conn net.Conn) (netip.Addr, bool) {
	ap, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	return ap.Addr().Unmap(), err == nil
}

// maxHostsLine is the longest line that ParseHosts reads, in bytes.
const maxHostsLine = 4 << 10

// ParseHosts reads fixed addresses for Options.Hosts in the form of a hosts file. Each line is
// "ADDRESS NAME [NAME…]", and # begins a comment. The error reports all faults together.
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
