package web

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Files of accounts (partition.KindFile; store/file.go) follow the rules of pages: robots.txt, the
// pace of their host and its address, no private address. The differences: a file is fetched whole
// or not at all, it has no links, and it is fetched once. A file that is not a picture, sound or
// film is not kept.

// MaxFile is the upper limit of Options.MaxFile in bytes. A file travels between peers in one row.
const MaxFile = store.MaxBodyBytes

// fileAgain is the time after which a file is due again when this peer fetches no files.
const fileAgain = 24 * time.Hour

// askFile returns the request for a file.
func (s *Source) askFile(addr string) fetch.Request {
	return fetch.Request{URL: addr, Accept: "image/*,video/*,audio/*", MaxBody: s.o.MaxFile,
		Want: func(status int, h http.Header) bool {
			size, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
			return status == http.StatusOK && (err != nil || size <= s.o.MaxFile) && mayBeFile(contentType(h))
		}}
}

// mayBeFile reports whether a response with this Content-Type may be a file. If the type is missing
// or generic, the bytes of the file decide later.
func mayBeFile(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil || kind == "" || kind == "application/octet-stream" || kind == "binary/octet-stream" {
		return true
	}
	return isFile(kind)
}

func isFile(kind string) bool {
	word, _, _ := strings.Cut(kind, "/")
	return word == "image" || word == "video" || word == "audio" || kind == "application/ogg"
}

// file records what a 2xx response for a file brought.
func (s *Source) file(t fetch.Task, res *fetch.Result, resp *fetch.Response) {
	size := resp.Header.Get("Content-Length")
	switch {
	case resp.Unread && mayBeFile(contentType(resp.Header)) && resp.Status == http.StatusOK:
		*res = refuse(*res, "media-size", fmt.Sprintf("a file of %.20s bytes, at most %d", size, s.o.MaxFile))
		return
	case resp.Truncated != "":
		*res = refuse(*res, "media-size", fmt.Sprintf("a file over %d bytes", s.o.MaxFile))
		return
	}
	rec := s.record(t, resp)
	if rec.MediaType == "" || strings.HasSuffix(rec.MediaType, "/octet-stream") {
		// A type from DetectContentType always parses.
		rec.MediaType, _, _ = mime.ParseMediaType(http.DetectContentType(resp.Body))
	}
	switch {
	case resp.Unread || len(resp.Body) == 0 || !isFile(rec.MediaType):
		*res = refuse(*res, "media-type", fmt.Sprintf("status %d, %.60s: no file", resp.Status, rec.MediaType))
		return
	case rec.NoArchive:
		*res = refuse(*res, "noarchive", "its site asks that it is not kept")
		return
	}
	sum := sha256.Sum256(resp.Body)
	rec.Digest, rec.Size = "sha256:"+hex.EncodeToString(sum[:]), int64(len(resp.Body))
	res.Record, res.Capture = rec, resp.Capture()
	res.Next = store.Next{State: store.StateDone}
}

// missedFile adds a gap to the account of a file that will not be fetched. Its reason is
// robots.txt, a limit, the file's type, or that the file no longer exists.
func missedFile(t fetch.Task, res *fetch.Result) {
	what := store.GapSkipped
	switch {
	case res.Next.State == store.StateGone:
		what = store.GapExpired
	case res.Again || res.Next.State != store.StateRefused:
		return
	}
	k := t.Due.Key
	res.Gaps = append(res.Gaps, store.Gap{Source: k.Service(), About: k.Account(), From: t.Now, To: t.Now, What: what,
		Reason: "a file: " + res.Next.Reason, At: t.Now})
}

// movedFile adds the target of a redirect as a file of the same account. A second redirect is not
// followed, because redirects could go on without end.
func (s *Source) movedFile(t fetch.Task, res *fetch.Result, resp *fetch.Response) {
	var to partition.Key
	base, err := partition.NewBase(t.Due.Key.URL())
	if err == nil && t.Due.Referrer.Kind() != partition.KindFile {
		if to, err = base.Resolve(resp.Header.Get("Location")); err == nil {
			to, err = t.Due.Key.Account().File(to.URL())
		}
	}
	if err != nil || to == "" || to == t.Due.Key || resp.Header.Get("Location") == "" {
		*res = refuse(*res, "redirect", fmt.Sprintf("status %d to nowhere, or a second time", resp.Status))
		return
	}
	res.Record = s.record(t, resp)
	res.Record.Redirect = to
	res.Next = store.Next{State: store.StateDone}
	res.Links = []store.Link{{Key: to, Rel: "redirect"}}
}
