package dht

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	madns "github.com/multiformats/go-multiaddr-dns"
)

// Limits of join addresses.
const (
	maxJoinFile = 256 << 10 // bytes read of a file; the rest is ignored
	maxJoin     = 1000      // addresses, after the names are resolved
	dnsTimeout  = 10 * time.Second
)

// resolveJoin turns the entries of Options.Join into peers with addresses. It returns those that it
// could resolve, together with the errors of the others.
func resolveJoin(ctx context.Context, entries []string) ([]peer.AddrInfo, error) {
	var addrs []ma.Multiaddr
	var errs []error
	for _, entry := range entries {
		found, err := resolveEntry(ctx, entry)
		if err != nil {
			errs = append(errs, fmt.Errorf("join address %q: %w", entry, err))
		}
		addrs = append(addrs, found...)
	}
	if len(addrs) > maxJoin {
		errs = append(errs, fmt.Errorf("%d join addresses, only the first %d are used", len(addrs), maxJoin))
		addrs = addrs[:maxJoin]
	}
	infos, err := peer.AddrInfosFromP2pAddrs(addrs...)
	if err != nil {
		errs = append(errs, err)
	}
	return infos, errors.Join(errs...)
}

// resolveEntry returns the addresses of one entry. A text that is a valid multiaddr is one.
// Otherwise, the name of an existing file is a list. Anything else must be a DNS name.
func resolveEntry(ctx context.Context, entry string) ([]ma.Multiaddr, error) {
	if a, err := ma.NewMultiaddr(entry); err == nil {
		return resolveAddr(ctx, a)
	}
	f, err := os.Open(entry)
	if err == nil {
		defer func() { _ = f.Close() }()
		return readJoinFile(ctx, f)
	}
	if strings.ContainsAny(entry, "/\\") || !strings.Contains(entry, ".") {
		return nil, fmt.Errorf("neither a multiaddr with /p2p/ID, nor a file (%w), nor a DNS name", err)
	}
	a, err := ma.NewMultiaddr("/dnsaddr/" + entry)
	if err != nil {
		return nil, err
	}
	return resolveAddr(ctx, a)
}

// readJoinFile reads one multiaddr per line. It skips empty lines and those that begin with #. A
// bad line gives an error, but does not stop the others.
func readJoinFile(ctx context.Context, r io.Reader) ([]ma.Multiaddr, error) {
	var out []ma.Multiaddr
	var errs []error
	lines := bufio.NewScanner(io.LimitReader(r, maxJoinFile))
	for lines.Scan() && len(out) < maxJoin {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		a, err := ma.NewMultiaddr(line)
		if err != nil {
			errs = append(errs, fmt.Errorf("line %.80q: %w", line, err))
			continue
		}
		found, err := resolveAddr(ctx, a)
		if err != nil {
			errs = append(errs, fmt.Errorf("line %.80q: %w", line, err))
		}
		out = append(out, found...)
	}
	return out, errors.Join(append(errs, lines.Err())...)
}

// resolveAddr returns an address with a peer id as it is. If there is no id, it looks up the
// dnsaddr records. Of these it uses the ones with a peer id.
func resolveAddr(ctx context.Context, a ma.Multiaddr) ([]ma.Multiaddr, error) {
	if _, err := a.ValueForProtocol(ma.P_P2P); err == nil {
		return []ma.Multiaddr{a}, nil
	}
	if _, err := a.ValueForProtocol(ma.P_DNSADDR); err != nil {
		return nil, errors.New("no /p2p/ID at its end")
	}
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	all, err := madns.DefaultResolver.Resolve(ctx, a)
	if err != nil {
		return nil, err
	}
	var out []ma.Multiaddr
	for _, one := range all {
		if _, err := one.ValueForProtocol(ma.P_P2P); err == nil {
			out = append(out, one)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no dnsaddr record with a peer id")
	}
	return out, nil
}

// resolveNames replaces DNS names in addresses that the user gave by IP addresses. It drops names
// that it cannot resolve.
func resolveNames(ctx context.Context, infos []peer.AddrInfo) []peer.AddrInfo {
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	for i := range infos {
		var addrs []ma.Multiaddr
		for _, a := range infos[i].Addrs {
			if !madns.Matches(a) {
				addrs = append(addrs, a)
			} else if found, err := madns.DefaultResolver.Resolve(ctx, a); err == nil {
				addrs = append(addrs, found...)
			}
		}
		infos[i].Addrs = addrs
	}
	return infos
}
