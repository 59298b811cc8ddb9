package churn

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Spec has everything that a process gets at its start.
type Spec struct {
	Naive     bool             `json:"naive,omitempty"` // a peer of the baseline
	Name      string           `json:"name"`
	Dir       string           `json:"dir"`
	From      string           `json:"from"` // source address of its requests
	Allow     string           `json:"allow"`
	Delay     time.Duration    `json:"delay"`
	Partition string           `json:"partition,omitempty"`
	Replicas  int              `json:"replicas,omitempty"`
	Location  *partition.Point `json:"location,omitempty"`
	Join      []string         `json:"join,omitempty"` // files with addresses
	// for the baseline: name -> HOST:PORT of all peers
	Roster map[string]string `json:"roster,omitempty"`
	// ids that it cannot reach when it starts
	Cut     []string `json:"cut,omitempty"`
	Verbose bool     `json:"verbose,omitempty"` // log more
}

// order is one line on a process's standard input.
type order struct {
	Do   string   `json:"do"`
	IDs  []string `json:"ids,omitempty"`  // of cut
	Keys []string `json:"keys,omitempty"` // of seed and owners: URLs
	File string   `json:"file,omitempty"` // of export
}

// Orders.
const (
	doCut    = "cut"    // close connections with IDs and allow no new ones
	doHeal   = "heal"   // allow connections with all peers again
	doSeed   = "seed"   // crawl Keys; no response
	doOwners = "owners" // the response has the owner of each of Keys
	doExport = "export" // write the records of the whole swarm to File, then respond
)

// word is one line on its standard output; one field is set.
type word struct {
	Hello  *hello  `json:"hello,omitempty"`
	Status *status `json:"status,omitempty"`
	Answer *answer `json:"answer,omitempty"`
}

// hello is a process's first word.
type hello struct {
	ID string `json:"id"`
}

// status is the state of a peer, sent every statusEvery.
type status struct {
	Peers  int `json:"peers"` // that it believes to be alive
	Slices int `json:"slices"`
	// slices of the swarm; 0 in the baseline, whose slices have no acting owner
	Total    int   `json:"total"`
	Awaited  int   `json:"awaited"`
	Pending  int64 `json:"pending"`
	Outbox   int64 `json:"outbox"`
	Fetching int   `json:"fetching"`
	Fetched  int64 `json:"fetched"`
	LinksOut int64 `json:"links_out"`
	LinksIn  int64 `json:"links_in"`
	BytesOut int64 `json:"bytes_out"`
	Idle     bool  `json:"idle"`
}

const statusEvery = time.Second

// answer is the result of an order.
type answer struct {
	To     string   `json:"to"` // the order's Do
	Owners []string `json:"owners,omitempty"`
	Error  string   `json:"error,omitempty"`
}

// maxLine is the largest size of an order or word: one may have thousands of Keys.
const maxLine = 16 << 20

// mouth writes words as whole lines, from any goroutine.
type mouth struct {
	mu  sync.Mutex
	out io.Writer
}

func (m *mouth) say(w word) error {
	b, err := json.Marshal(w)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err = m.out.Write(append(b, '\n'))
	return err
}

// lines decodes each line of r into a T until the end of r.
func lines[T any](r io.Reader, each func(T) error) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), maxLine)
	for sc.Scan() {
		var v T
		if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
			return fmt.Errorf("a line that is no JSON: %.100q: %w", sc.Text(), err)
		}
		if err := each(v); err != nil {
			return err
		}
	}
	return sc.Err()
}
