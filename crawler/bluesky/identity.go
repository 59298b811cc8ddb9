package bluesky

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/echo-node/echo-node/crawler/service"
)

// Identity is the content of a DID's document.
type Identity struct {
	DID     string
	Handles []string // as claimed: a handle is valid if Resolve returns its DID
	PDS     string   // "https://host[:port]" of the server with its records; "" = none
}

// Handle returns the first claimed handle, "" = none.
func (i Identity) Handle() string {
	if len(i.Handles) == 0 {
		return ""
	}
	return i.Handles[0]
}

// maxHandles is the number of handles stored from one document.
const maxHandles = 8

// did returns t if it is a did:plc or did:web, else "". A did:web must be a host, with or without a
// port: AT Protocol allows no more.
func did(t string) string {
	if rest, ok := strings.CutPrefix(t, "did:plc:"); ok {
		if len(rest) == 24 &&
			!strings.ContainsFunc(rest, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '2' || r > '7') }) {
			return t
		}
		return ""
	}
	if rest, ok := strings.CutPrefix(t, "did:web:"); ok && webHost(rest) != "" {
		return t
	}
	return ""
}

// webHost returns the host of a did:web, "" if it has a path or is invalid.
func webHost(rest string) string {
	host, err := url.PathUnescape(rest)
	if err != nil || rest == "" || len(rest) > 260 || strings.Contains(rest, ":") ||
		strings.ContainsFunc(host, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
				strings.ContainsRune(".-:", r))
		}) {
		return ""
	}
	if name, port, has := strings.Cut(host, ":"); name == "" || has &&
		(port == "" || strings.Trim(port, "0123456789") != "") {
		return ""
	}
	return strings.ToLower(host)
}

// handle returns t as a handle in lower case, "" if it is not a handle.
func handle(t string) string {
	s := strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(t, "at://"), "@"))
	if len(s) > 253 || !strings.Contains(s, ".") || strings.HasPrefix(s, ".") || strings.HasSuffix(s, ".") ||
		strings.Contains(s, "..") ||
		strings.ContainsFunc(s,
			func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-') }) {
		return ""
	}
	return s
}

// Resolve returns the DID of a handle, as this server claims.
func (c *Client) Resolve(ctx context.Context, of string) (string, error) {
	h := handle(of)
	if h == "" {
		return "", fmt.Errorf("bluesky: resolve: %q is no handle", service.Clip(of, 100))
	}
	var w struct {
		DID text `json:"did"`
	}
	if err := c.read(ctx, "resolve", ClassIdentity, "com.atproto.identity.resolveHandle", url.Values{"handle": {h}},
		&w); err != nil {
		return "", err
	}
	if id := did(string(w.DID)); id != "" {
		return id, nil
	}
	return "", c.s.Misshapen("resolve", "not a DID: "+string(w.DID))
}

// DocumentAddress returns the server and the path of a DID's document. For did:plc the server is
// the directory plc, for did:web it is the host in the DID.
func DocumentAddress(id, plc string) (base, path string, err error) {
	if did(id) == "" {
		return "", "", fmt.Errorf("bluesky: document: %q is no DID that is known here", service.Clip(id, 100))
	}
	if rest, ok := strings.CutPrefix(id, "did:web:"); ok {
		return "https://" + webHost(rest), "/.well-known/did.json", nil
	}
	return plc, "/" + id, nil
}

// Document reads the document of a DID from this server, which must be the one of DocumentAddress.
// A Fault that is Gone means that the DID is unknown or deleted.
func (c *Client) Document(ctx context.Context, id string) (Identity, error) {
	_, path, err := DocumentAddress(id, c.s.Base())
	if err != nil {
		return Identity{}, err
	}
	a, err := c.s.Get(ctx, service.Ask{Op: "document", Class: ClassIdentity, Path: path})
	if err != nil {
		if f, ok := err.(*service.Fault); ok && (f.Status == 404 || f.Status == 410) {
			f.Word = service.Gone
		}
		return Identity{}, err
	}
	var w struct {
		ID       text       `json:"id"`
		Also     list[text] `json:"alsoKnownAs"`
		Services list[struct {
			ID       text `json:"id"`
			Type     text `json:"type"`
			Endpoint text `json:"serviceEndpoint"`
		}] `json:"service"`
	}
	if !service.Object(a.Body) || !service.Decoded(json.Unmarshal(a.Body, &w)) {
		return Identity{}, c.s.Misshapen("document", "")
	}
	if string(w.ID) != id {
		return Identity{}, c.s.Misshapen("document", "of another DID: "+string(w.ID))
	}
	out := Identity{DID: id}
	for _, also := range w.Also.All {
		if h := handle(string(also)); strings.HasPrefix(string(also), "at://") && h != "" &&
			len(out.Handles) < maxHandles && !slices.Contains(out.Handles, h) {
			out.Handles = append(out.Handles, h)
		}
	}
	for _, s := range w.Services.All {
		if out.PDS == "" && (s.ID == "#atproto_pds" || string(s.ID) == id+"#atproto_pds") &&
			s.Type == "AtprotoPersonalDataServer" {
			out.PDS = origin(string(s.Endpoint))
		}
	}
	return out, nil
}

// origin returns a URL without path, query or user, "" if s is none. Do decides whether requests to
// it are allowed.
func origin(s string) string {
	u, err := url.Parse(s)
	if err != nil || len(s) > service.MaxAddress || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" ||
		u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return ""
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}
