package fetch

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/echo-node/echo-node/store"
)

// Capture returns the exchange of r in the form in which it is stored. Both headers are written as
// HTTP/1.1 would send them, for any protocol. Field names have their usual case and are sorted,
// because net/http does not keep the original form. Body is shared with r, not copied. The store
// cuts what exceeds its caps. Credentials (Authorization, Cookie) are left out, because captures
// are exported and copied to peers.
func (r *Response) Capture() *store.Capture {
	c := &store.Capture{Status: r.Status, Protocol: r.proto, Body: r.Body, Cut: r.Truncated != "" || r.Unread}
	if r.Addr.IsValid() {
		c.Addr = r.Addr.String()
	}
	if q := r.request; q != nil {
		host := q.Host
		if host == "" {
			host = q.URL.Host
		}
		sent := q.Header.Clone()
		for _, secret := range [...]string{"Authorization", "Proxy-Authorization", "Cookie"} {
			sent.Del(secret)
		}
		c.Request = head(fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\n", q.URL.RequestURI(), host), sent)
	}
	c.Response = head("HTTP/1.1 "+r.status+"\r\n", r.Header)
	return c
}

func head(first string, h http.Header) []byte {
	var b bytes.Buffer
	b.WriteString(first)
	_ = h.Write(&b) // a write to memory does not fail
	return b.Bytes()
}
