package fetch

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/echo-node/echo-node/partition"
)

// maxPortRanges is the number of port ranges that an operator may allow.
const maxPortRanges = 64

// PortRange is the ports from First to Last, both included.
type PortRange struct{ First, Last uint16 }

// ParsePorts parses ports and port ranges such as "81" and "8000-8010". The error reports all
// faults together.
func ParsePorts(texts []string) ([]PortRange, error) {
	var out []PortRange
	var errs []error
	for _, text := range texts {
		first, last, ranged := strings.Cut(strings.TrimSpace(text), "-")
		if !ranged {
			last = first
		}
		a, err := strconv.ParseUint(first, 10, 16)
		b, err2 := strconv.ParseUint(last, 10, 16)
		if err != nil || err2 != nil || a == 0 || a > b {
			errs = append(errs, fmt.Errorf("fetch: %.40q is neither a port nor a range of ports", text))
			continue
		}
		out = append(out, PortRange{uint16(a), uint16(b)})
	}
	return out, errors.Join(append(errs, portFaults(out)...)...)
}

// portFaults returns an error for each single port that no operator may allow, and for too many
// ranges.
func portFaults(ranges []PortRange) (errs []error) {
	if len(ranges) > maxPortRanges {
		errs = append(errs, fmt.Errorf("fetch: %d ranges of ports, at most %d", len(ranges), maxPortRanges))
	}
	for _, r := range ranges {
		for p := int(r.First); p <= int(r.Last); p++ {
			if r.First == r.Last && partition.BadPort(uint16(p)) {
				errs = append(errs, fmt.Errorf("fetch: port %d belongs to another service than the web and is never used",
					p))
			}
		}
	}
	return errs
}

// Port returns ErrPort if this client sends no request to that port. Such a port belongs to another
// service (browsers keep a list of these). Or it is below 1024, is neither 80 nor 443, and is not
// in Options.AllowPorts.
func (c *Client) Port(port uint16) error {
	switch {
	case partition.BadPort(port):
		return fmt.Errorf("%w: %d belongs to another service than the web", ErrPort, port)
	case port == 80 || port == 443 || port >= 1024:
		return nil
	}
	for _, r := range c.o.AllowPorts {
		if r.First <= port && port <= r.Last {
			return nil
		}
	}
	return fmt.Errorf("%w: %d is below 1024 (allow it with --allow-port)", ErrPort, port)
}

// PortOf is Port for the port of u.
func (c *Client) PortOf(u *url.URL) error {
	port, err := portOf(u)
	if err != nil {
		return err
	}
	return c.Port(port)
}

// portOf returns the port of u, or the default port of its scheme.
func portOf(u *url.URL) (uint16, error) {
	text := u.Port()
	if text == "" {
		text = "443"
		if u.Scheme == "http" || u.Scheme == "ws" {
			text = "80"
		}
	}
	return parsePort(text)
}

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%w: %.20q is none", ErrPort, text)
	}
	return uint16(n), nil
}

// splitPort is net.SplitHostPort with a numeric port.
func splitPort(addr string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("dial: %w", err)
	}
	port, err = parsePort(text)
	return host, port, err
}
