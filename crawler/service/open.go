package service

import (
	"context"
	"io"
	"net/http"

	"github.com/echo-node/echo-node/crawler/fetch"
)

// maxRefusal is how many bytes are read of a bad response.
const maxRefusal = 64 << 10

// Opener sends a request and returns the response with an unread body, as fetch.Client.Open does.
// It blocks private addresses and caps the header. It follows no redirect, because a credential
// belongs to one server.
type Opener func(ctx context.Context, r fetch.Request) (*http.Response, error)

// Open requests an endless response. The caller must cap and close the body of a good response. Any
// other response is a *Fault.
func (c *Client) Open(ctx context.Context, a Ask, accept string, open Opener) (*http.Response, error) {
	resp, err := open(ctx, c.request(a, accept))
	if err != nil {
		return nil, c.unreachable(a.Op, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()                                      //nolint:errcheck // read only
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) //nolint:errcheck // a part of the body is enough
	f := c.judge(&fetch.Response{Status: resp.StatusCode, Header: resp.Header, Body: body}, c.o.Credential.Set())
	if f == nil { // another good status: not the requested stream
		f = &Fault{Status: resp.StatusCode, Word: Misshapen}
	}
	return nil, c.refused(a.Op, f, resp.Header)
}
