package mastodontest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/storytest"
)

// Of a stream.
const (
	streamPath  = "/api/v1/streaming/"
	streamPoll  = 2 * time.Millisecond  // how often it looks whether something has happened, in real time
	streamThump = 20 * time.Millisecond // and how often it says that it lives
)

// stream sends what happens to the posts of the server's own people, or to those with a hashtag, as server-sent events, from
// now on, until who listens goes away.
func (w *World) stream(rw http.ResponseWriter, r *http.Request) {
	w.Lock()
	v := &visit{w: w, l: &w.o.Lies, now: w.Advance(), q: r.URL.Query()}
	v.Answer = storytest.Answer{RW: rw}
	lies, at := w.o.Lies, len(w.happened)
	_, known := w.o.Tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	which := strings.TrimPrefix(r.URL.Path, streamPath)
	switch {
	case len(w.o.Tokens) > 0 && !known:
		v.fail(http.StatusUnauthorized, "Missing access token")
		which = ""
	case which != "public/local" && which != "hashtag":
		v.notFound()
		which = ""
	}
	w.Unlock()
	if which == "" {
		return
	}
	rw.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	send := func(text string) bool {
		_, err := rw.Write([]byte(text))
		return err == nil && http.NewResponseController(rw).Flush() == nil
	}
	tag, sent := strings.ToLower(r.URL.Query().Get("tag")), 0
	if !send(":)\n") {
		return
	}
	poll, thump := time.NewTicker(streamPoll), time.NewTicker(streamThump)
	defer poll.Stop()
	defer thump.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-thump.C:
			if !lies.StreamSilent && !send(":thump\n") {
				return
			}
			continue
		case <-poll.C:
		}
		var events []string
		events, at = w.told(v, at, tag)
		for _, e := range events {
			if lies.StreamSilent {
				continue
			}
			if lies.StreamHuge > 0 {
				e = "data: " + strings.Repeat("x", lies.StreamHuge) + "\n\n"
			}
			if lies.StreamGarbage {
				e = "event: update\ndata: {\"id\":\n\nevent: what\nfoo\n\ndata\n\n" + e
			}
			if lies.StreamRepeats {
				e += e
			}
			if sent++; lies.StreamBreaks > 0 && sent >= lies.StreamBreaks {
				_ = send(e[:len(e)/2])
				return
			}
			if !send(e) {
				return
			}
		}
	}
}

// told are the events after those seen.
func (w *World) told(v *visit, seen int, tag string) (out []string, now int) {
	w.Lock()
	defer w.Unlock()
	v.now = w.Advance()
	for _, h := range w.happened[seen:] {
		p := h.Post
		if p == nil || p.By.Host != "" || p.Boost != nil || tag != "" && !slices.Contains(p.Tags, tag) {
			continue
		}
		kind, data := []string{"update", "status.update", "delete"}[h.Kind], v.id(p.ID)
		text := fmt.Sprint(data)
		if h.Kind != storytest.Gone {
			b, err := json.Marshal(v.status(p))
			if err != nil {
				panic(err) // plain values
			}
			text = string(b)
		}
		out = append(out, "event: "+kind+"\ndata: "+text+"\n\n")
	}
	return out, len(w.happened)
}
