package service

import (
	"context"
	"io"
	"net/http"

	"github.com/echo-node/echo-node/crawler/fetch"
)

// maxRefusal is how many bytes are read of an answer that is not what was asked for.
const maxRefusal = 64 << 10

// Opener sends a request and gives the answer with its body still to be read. It guards private addresses, caps the
// header, and follows no redirect, as a credential is for one server: fetch.Client.Open.
type Opener func(ctx context.Context, r fetch.Request) (*http.Response, error)

// Open asks for what has no end. The body of a good answer is the caller's to cap and to close; any other answer is a
// *Fault.
func (c *Client) Open(ctx context.Context, a Ask, accept string, open Opener) (*http.Response, error) {
	resp, err := open(ctx, c.request(a, accept))
	if err != nil {
		return nil, c.unreachable(a.Op, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()                                      //nolint:errcheck // read only
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) //nolint:errcheck // what came of it says enough
	f := c.judge(&fetch.Response{Status: resp.StatusCode, Header: resp.Header, Body: body}, c.o.Credential.Set())
	if f == nil { // another good status: not what was asked for
		f = &Fault{Status: resp.StatusCode, Word: Misshapen}
	}
	return nil, c.refused(a.Op, f, resp.Header)
}
