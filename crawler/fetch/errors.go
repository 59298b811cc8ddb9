package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// Sentinel errors that callers test for.
var (
	ErrPrivate = errors.New("private address (allow it with --allow-net)")
	ErrPort    = errors.New("port that is not asked")
	ErrContact = errors.New("no contact is set: set --contact MAIL-OR-URL before anything but loopback is crawled")
)

// BusyError says that the IP address of a site allows no request before Until.
type BusyError struct{ Until time.Time }

// Error names the time in UTC.
func (e *BusyError) Error() string {
	return "fetch: address busy until " + e.Until.UTC().Format(time.RFC3339Nano)
}

// LimitError names the limit that a fetch hit.
type LimitError struct {
	Name  string // Limit…
	Limit any    // its value
}

// Error names the limit and its value.
func (e *LimitError) Error() string { return fmt.Sprintf("over %s %v", e.Name, e.Limit) }

// Final reports whether err would come again if the same request were sent soon. Examples: the name
// does not exist, the address is private, the certificate is invalid.
func Final(err error) bool {
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var limit *LimitError
	var host x509.HostnameError
	switch {
	case errors.Is(err, ErrPrivate), errors.Is(err, ErrContact), errors.Is(err, ErrPort), errors.As(err, &cert),
		errors.As(err, &host):
		return true
	case errors.As(err, &dns):
		return dns.IsNotFound
	case errors.As(err, &limit):
		return limit.Name != LimitTotal && limit.Name != LimitIdle
	}
	return false
}

// Stop returns the word under which err is counted, "" for nil.
func Stop(err error) string {
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var limit *LimitError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &limit):
		return limit.Name
	case errors.Is(err, ErrPrivate):
		return "private"
	case errors.Is(err, ErrPort):
		return "port"
	case errors.Is(err, ErrContact):
		return "contact"
	case errors.As(err, &dns):
		return "dns"
	case errors.As(err, &cert), strings.Contains(err.Error(), "tls: "):
		return "tls"
	}
	return "unreachable"
}

// Reason returns the text of err that is stored with a Key: one line, at most 200 bytes, without
// the address of this peer.
func Reason(err error) string {
	var op *net.OpError
	text := err.Error()
	if errors.As(err, &op) && !errors.Is(err, ErrPrivate) {
		text = op.Op + ": " + op.Err.Error() // without "127.0.0.1:43210->…"
	}
	text = strings.Join(strings.Fields(text), " ")
	for _, prefix := range [...]string{"fetch: ", "get: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "")
	}
	return text
}

// cause replaces the "context canceled" of a request that our own timer ended. It returns the
// LimitError or BusyError that the timer gave as the reason. It also replaces two errors of
// net/http by the LimitError that they mean.
func cause(ctx context.Context, err error) error {
	var limit *LimitError
	if errors.Is(err, errNobody) {
		return err
	}
	if err != nil && errors.As(context.Cause(ctx), &limit) {
		return limit
	}
	var busy *BusyError
	if err != nil && errors.As(context.Cause(ctx), &busy) {
		return busy
	}
	if err != nil && strings.Contains(err.Error(), "server response headers exceeded") {
		return &LimitError{LimitHeader, "bytes"}
	}
	if err != nil && strings.Contains(err.Error(), "chunked encoding contains too much non-data") {
		return &LimitError{LimitChunks, "bytes"}
	}
	return err
}
