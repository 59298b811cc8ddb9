package churn

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// naiveLinks is what peers of the baseline send each other.
type naiveLinks struct {
	From string   `json:"from"`
	URLs []string `json:"urls"`
}

// hand queues the Keys of this peer and sends the rest to their owners, once. What does not
// arrive is lost.
func (n *naive) hand(keys []partition.Key) {
	n.mu.Lock()
	live := n.live(time.Now())
	away := map[string][]string{}
	for _, k := range keys {
		host := hostOf(k)
		if owner := naiveOwner(live, host); owner != n.spec.Name {
			away[owner] = append(away[owner], k.URL())
		} else if !n.seen[k] {
			n.seen[k] = true
			n.queue[host] = append(n.queue[host], k)
		}
	}
	n.mu.Unlock()
	for owner, urls := range away {
		for len(urls) > 0 {
			some := urls[:min(len(urls), naiveBatch)]
			urls = urls[len(some):]
			n.post(owner, some)
		}
	}
}

func (n *naive) post(owner string, urls []string) {
	body, err := json.Marshal(naiveLinks{n.spec.Name, urls})
	if err != nil || n.cutOff(owner) {
		return // lost
	}
	n.sent.Add(int64(len(urls)))
	n.bytes.Add(int64(len(body)))
	resp, err := n.client.Post("http://"+n.spec.Roster[owner]+"/links", "application/json", bytes.NewReader(body))
	if err != nil {
		return // lost
	}
	_ = resp.Body.Close()
}

func (n *naive) cutOff(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.off[name]
}

func (n *naive) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", func(rw http.ResponseWriter, r *http.Request) {
		if n.cutOff(r.FormValue("from")) {
			panic(http.ErrAbortHandler) // the connection closes without a response
		}
		rw.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /links", func(rw http.ResponseWriter, r *http.Request) {
		var l naiveLinks
		if err := json.NewDecoder(io.LimitReader(r.Body, maxNaiveBody)).Decode(&l); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		if n.cutOff(l.From) {
			panic(http.ErrAbortHandler)
		}
		keys, err := parseKeys(l.URLs)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		n.got.Add(int64(len(keys)))
		rw.WriteHeader(http.StatusAccepted)
		n.take(keys)
	})
	return mux
}

// take queues what another peer believes to be this peer's. If it is not, due notices that.
func (n *naive) take(keys []partition.Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, k := range keys {
		if !n.seen[k] {
			n.seen[k] = true
			host := hostOf(k)
			n.queue[host] = append(n.queue[host], k)
		}
	}
}

// pings sends a ping to every peer of the roster every second.
func (n *naive) pings(ctx context.Context) error {
	tick := time.NewTicker(naivePing)
	defer tick.Stop()
	for {
		for _, name := range n.names {
			if name != n.spec.Name && !n.cutOff(name) {
				go n.ping(ctx, name) // ends by the client's timeout
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (n *naive) ping(ctx context.Context, name string) {
	address := "http://" + n.spec.Roster[name] + "/ping?from=" + n.spec.Name
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return
	}
	n.bytes.Add(int64(len(address)))
	resp, err := n.client.Do(req)
	if err != nil {
		return // no response
	}
	_ = resp.Body.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.heard[name] = time.Now()
}
