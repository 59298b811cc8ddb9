package fetch

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/echo-node/echo-node/store"
)

// Capture is the exchange of r as it is kept: both heads as HTTP/1.1 would send
// them, whatever the protocol was; names of fields in their usual case and in
// order, as net/http no longer knows how they came. Body is r's, not a copy.
// What the caps of the store do not hold it cuts itself. What proves who asks
// (Authorization, Cookie) is left out: captures are exported and copied to peers.
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
	_ = h.Write(&b) // to memory
	return b.Bytes()
}
