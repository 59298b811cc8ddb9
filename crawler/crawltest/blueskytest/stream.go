package blueskytest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// streamPoll is how often a stream looks whether something has happened, in real time.
const streamPoll = 2 * time.Millisecond

// subscribe is Jetstream: what happened after the cursor (microseconds), then what
// happens, until who listens goes away.
func (w *World) subscribe(rw http.ResponseWriter, r *http.Request) {
	up := websocket.Upgrader{}
	conn, err := up.Upgrade(rw, r, nil)
	if err != nil {
		return // it has answered
	}
	defer conn.Close() //nolint:errcheck // it is over
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			if _, _, err := conn.NextReader(); err != nil {
				return
			}
		}
	}()
	q := r.URL.Query()
	cursor, err := strconv.ParseInt(q.Get("cursor"), 10, 64)
	if err != nil {
		w.Lock()
		cursor = w.Advance().UnixMicro()
		w.Unlock()
	}
	tick := time.NewTicker(streamPoll)
	defer tick.Stop()
	for replayed := false; ; replayed = true {
		var lines [][]byte
		lines, cursor = w.since(cursor, q["wantedCollections"], q["wantedDids"], replayed)
		for _, b := range lines {
			if conn.WriteMessage(websocket.TextMessage, b) != nil {
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

// since are the lines after a cursor, and the cursor after them.
func (w *World) since(cursor int64, collections, dids []string, live bool) (lines [][]byte, next int64) {
	w.Lock()
	defer w.Unlock()
	v := &visit{w: w, l: &w.o.Lies, now: w.Advance()}
	for _, e := range w.events {
		if e.micros <= cursor || live && w.o.Lies.StreamSilent {
			continue
		}
		cursor = e.micros
		if len(dids) > 0 && !slices.Contains(dids, e.h.Who.ID) {
			continue
		}
		b := v.line(e)
		if e.h.Post != nil || e.h.Edge.Who != nil {
			if len(collections) > 0 && !slices.ContainsFunc(collections, func(c string) bool { return strings.Contains(string(b), `"collection":"`+c+`"`) }) {
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
