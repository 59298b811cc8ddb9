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

const streamPath = "/api/v1/streaming/"

// stream sends new events of local posts, or of local posts with a hashtag, as server-sent events.
// It ends when the client disconnects.
func (w *World) stream(rw http.ResponseWriter, r *http.Request) {
	v, at := w.listen(rw, r)
	if v == nil {
		return
	}
	defer func() {
		w.Lock()
		defer w.Unlock()
		w.readers--
	}()
	rw.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	send := func(text string) bool {
		_, err := rw.Write([]byte(text))
		return err == nil && http.NewResponseController(rw).Flush() == nil
	}
	if !send(":)\n") {
		return
	}
	poll := time.NewTicker(w.o.StreamPoll)
	defer poll.Stop()
	last, before := "", ""
	for n, sent := 0, 0; ; n++ {
		select {
		case <-r.Context().Done():
			return
		case <-poll.C:
		}
		var events []string
		var lies Lies
		events, at, lies = w.told(v, at, strings.ToLower(v.q.Get("tag")))
		if lies.StreamSilent {
			continue
		}
		if lies.StreamChatter > 0 && !send(":"+strings.Repeat("x", lies.StreamChatter)+"\n") || n%10 == 9 &&
			!send(":thump\n") {
			return
		}
		for _, e := range events {
			if sent++; lies.StreamDrops > 0 && sent%lies.StreamDrops == 0 {
				continue
			}
			if lies.StreamBreaks > 0 && sent >= lies.StreamBreaks {
				_ = send(e[:len(e)/2])
				return
			}
			if !send(lies.event(e)) || lies.StreamReplays && !send(before) {
				return
			}
			last, before = e, last
		}
	}
}

// listen begins a stream. v is nil if the stream is refused.
func (w *World) listen(rw http.ResponseWriter, r *http.Request) (v *visit, at int) {
	w.Lock()
	defer w.Unlock()
	v = &visit{w: w, l: &w.o.Lies, now: w.Advance(), q: r.URL.Query()}
	v.Answer = storytest.Answer{RW: rw}
	w.streams++
	_, known := w.o.Tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	which := strings.TrimPrefix(r.URL.Path, streamPath)
	switch {
	case v.l.StreamHTML:
		v.Page(http.StatusOK, "<h1>Hello</h1>")
		return nil, 0
	case v.l.StreamRefuses != 0:
		v.fail(v.l.StreamRefuses, "No stream")
		return nil, 0
	case (len(w.o.Tokens) > 0 || v.l.StreamToken) && !known:
		v.fail(http.StatusUnauthorized, "Missing access token")
		return nil, 0
	case which != "public/local" && which != "hashtag":
		v.notFound()
		return nil, 0
	}
	w.readers++
	return v, len(w.happened)
}

// event returns an event as changed by the Lies.
func (l Lies) event(e string) string {
	if l.StreamHuge > 0 {
		e = "data: " + strings.Repeat("x", l.StreamHuge) + "\n\n"
	}
	if l.StreamGarbage {
		e = "event: update\ndata: {\"id\":\n\nevent: what\nfoo\n\ndata\n\n" + e
	}
	return e
}

// told returns the events after the first seen ones.
func (w *World) told(v *visit, seen int, tag string) (out []string, now int, lies Lies) {
	w.Lock()
	defer w.Unlock()
	v.now = w.Advance()
	lies = *v.l
	for _, h := range w.happened[seen:] {
		p := h.Post
		if p == nil || p.By.Host != "" || p.Boost != nil || tag != "" && !slices.Contains(p.Tags, tag) {
			continue
		}
		kind, data := []string{"update", "status.update", "delete"}[h.Kind], v.id(p.ID)
		text := fmt.Sprint(data)
		if h.Kind != storytest.Gone {
			status := v.status(p)
			if as := lies.StreamAs; as != "" {
				status["account"].(map[string]any)["acct"] = p.By.User + "@" + as
			}
			b, err := json.Marshal(status)
			if err != nil {
				panic(err) // plain values always have a JSON form
			}
			text = string(b)
		}
		event := "event: " + kind + "\ndata: " + text + "\n\n"
		if out = append(out, event); lies.StreamRepeats {
			out = append(out, event)
		}
	}
	return out, len(w.happened), lies
}
