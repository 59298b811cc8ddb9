package blueskytest

import (
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// Constants of a stream.
const (
	streamPoll = 2 * time.Millisecond // default of Options.StreamPoll
	maxHello   = 10 << 20             // maximum size of a client's message, in bytes
)

// hello is a client's options_update message, in Jetstream's form.
type hello struct {
	Type    string `json:"type"`
	Payload struct {
		Collections []string `json:"wantedCollections"`
		DIDs        []string `json:"wantedDids"`
	} `json:"payload"`
}

// subscribe is the Jetstream endpoint. It sends the events after the cursor (microseconds), then
// new events, until the client disconnects.
func (w *World) subscribe(rw http.ResponseWriter, r *http.Request) {
	w.Lock()
	refused := w.o.Lies.StreamRefuses
	w.subscriptions++
	w.Unlock()
	if refused > 0 {
		rw.Header().Set("Retry-After", "120")
		rw.WriteHeader(refused)
		return
	}
	up := websocket.Upgrader{}
	conn, err := up.Upgrade(rw, r, nil)
	if err != nil {
		return // Upgrade has sent the error
	}
	defer conn.Close() //nolint:errcheck // the stream is over
	conn.SetReadLimit(maxHello)
	q := r.URL.Query()
	var h hello
	h.Payload.Collections, h.Payload.DIDs = q["wantedCollections"], q["wantedDids"]
	if q.Get("requireHello") == "true" && (conn.ReadJSON(&h) != nil || h.Type != "options_update") {
		return
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			if _, _, err := conn.NextReader(); err != nil {
				return
			}
		}
	}()
	cursor, err := strconv.ParseInt(q.Get("cursor"), 10, 64)
	if err != nil {
		w.Lock()
		cursor = w.Advance().UnixMicro()
		w.Unlock()
	}
	poll := w.o.StreamPoll
	if poll == 0 {
		poll = streamPoll
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	sent := 0
	for replayed := false; ; replayed = true {
		var lines [][]byte
		lines, cursor = w.since(cursor, h.Payload.Collections, h.Payload.DIDs, replayed)
		for _, b := range lines {
			if conn.WriteMessage(websocket.TextMessage, b) != nil {
				return
			}
			if sent++; w.breaks(sent) {
				return
			}
		}
		select {
		case <-gone:
			return
		case <-tick.C:
		}
	}
}

// breaks reports whether the connection ends after the given number of events.
func (w *World) breaks(sent int) bool {
	w.Lock()
	defer w.Unlock()
	return w.o.Lies.StreamBreaks > 0 && sent >= w.o.Lies.StreamBreaks
}

// Subscriptions returns the number of attempts to connect to the Jetstream.
func (w *World) Subscriptions() int {
	w.Lock()
	defer w.Unlock()
	return w.subscriptions
}

// since returns the lines after a cursor, and the new cursor.
func (w *World) since(cursor int64, collections, dids []string, live bool) (lines [][]byte, next int64) {
	w.Lock()
	defer w.Unlock()
	v := &visit{w: w, l: &w.o.Lies, now: w.Advance()}
	if live && w.o.Lies.StreamSilent {
		return nil, cursor
	}
	first := sort.Search(len(w.events), func(i int) bool { return w.events[i].micros > cursor })
	for n, e := range w.events[first:] {
		cursor = e.micros
		if every := w.o.Lies.StreamDrops; every > 0 && (first+n)%every == 0 {
			continue
		}
		if len(dids) > 0 && !slices.Contains(dids, e.h.Who.ID) {
			continue
		}
		b := v.line(e)
		if w.o.Lies.StreamGarbage {
			lines = append(lines, []byte(`{"did":[],"time_us":"soon","kind":7}`), b[:len(b)/2])
		}
		if e.h.Post != nil || e.h.Edge.Who != nil {
			if len(collections) > 0 &&
				!slices.ContainsFunc(collections,
					func(c string) bool { return strings.Contains(string(b), `"collection":"`+c+`"`) }) {
				continue
			}
		}
		lines = append(lines, b)
		if w.o.Lies.StreamRepeats {
			lines = append(lines, b)
		}
	}
	return lines, cursor
}
