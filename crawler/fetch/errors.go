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

// Sentinels that callers branch on.
var (
	ErrPrivate = errors.New("private address (allow it with --allow-net)")
	ErrPort    = errors.New("port that is not asked")
	ErrContact = errors.New("no contact is set: set --contact MAIL-OR-URL before anything but loopback is crawled")
)

// BusyError says that the IP address of a site may not be asked before Until.
type BusyError struct{ Until time.Time }

// Error says until when.
func (e *BusyError) Error() string {
	return "fetch: address busy until " + e.Until.UTC().Format(time.RFC3339Nano)
}

// LimitError says which limit a fetch hit.
type LimitError struct {
	Name  string // Limit…
	Limit any    // its value
}

// Error names the limit and its value.
func (e *LimitError) Error() string { return fmt.Sprintf("over %s %v", e.Name, e.Limit) }

// Final says whether err would come again if the same were asked soon: the
// name does not exist, the address is private, the certificate is not good.
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

// Stop is the word by which err is counted.
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

// Reason is err in the words kept with a Key: one line, without the address of
// this peer, at most 200 bytes.
func Reason(err error) string {
	var op *net.OpError
	text := err.Error()
	if errors.As(err, &op) && !errors.Is(err, ErrPrivate) {
		text = op.Op + ": " + op.Err.Error() // not "127.0.0.1:43210->…"
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

// cause replaces the bare "context canceled" of a request that one of our own
// timers ended by the LimitError or BusyError it was ended with.
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
