package churn

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Figures are the results of a run; the package comment explains each. A figure that could not
// be measured is nil.
type Figures struct {
	Pages        int      `json:"pages"` // different pages fetched
	Expected     int      `json:"expected"`
	Coverage     float64  `json:"coverage"`
	Overlap      float64  `json:"overlap"`
	URLs         float64  `json:"urls_per_page"`
	Bytes        float64  `json:"bytes_per_page"`
	Balance      *float64 `json:"balance"`
	BalancePages float64  `json:"balance_pages"`
	Contra       *float64 `json:"contravariance"`
	Violations   int64    `json:"politeness_violations"`
	MinGapMS     float64  `json:"min_gap_ms"`
	LinksLost    int      `json:"links_lost"`
	RecordsLost  int      `json:"records_lost"`
	RecordsTwice int      `json:"records_twice"` // more than once in the export
	Takeover     *float64 `json:"takeover_s"`
	TakeoverMid  *float64 `json:"takeover_median_s"`
	// share of takeovers by another peer than the killed one
	ByOthers *float64 `json:"takeover_by_others"`
	MedianKM *float64 `json:"median_km"`
	Kills    int      `json:"kills"`
	Cuts     int      `json:"cuts"`
	Joins    int      `json:"joins"`
	Seconds  float64  `json:"seconds"` // from the seeds to the last page
	Idle     bool     `json:"idle"`    // it ended because it was done, not by the limit
	Note     string   `json:"note,omitempty"`
	First    []string `json:"first,omitempty"` // the first few links and records lost
	Each     []Kill   `json:"each_kill,omitempty"`
	// the first few requests made too soon and pages fetched twice
	Offences []string `json:"offences,omitempty"`
}

// Kill says what followed one kill.
type Kill struct {
	At       float64 `json:"at_s"`
	Peer     string  `json:"peer"`
	Cut      bool    `json:"cut"`   // while the swarm was cut
	Sites    int     `json:"sites"` // that the peer was crawling and had not finished
	ByOthers int     `json:"by_others"`
	Longest  float64 `json:"takeover_s"` // of these sites
	Median   float64 `json:"takeover_median_s"`
	Slowest  string  `json:"slowest,omitempty"` // the site that waited longest
}

// firstLost is how many lost pages and records are named.
const firstLost = 10

// account computes all figures after the end. records are the exported ones by Key.
func (f *fleet) account(records map[partition.Key][]store.Record) Figures {
	expected := f.world.Expected(f.world.Seeds())
	diff, rep, all := f.world.Compare(expected), f.world.Report(), f.visits.Sorted()
	t := &told{f.world, map[string][]string{}}
	g := Figures{Expected: len(expected), Pages: len(expected) - len(diff.Missing), Kills: len(f.kills), Cuts: f.cuts,
		Joins:      f.joins,
		Violations: rep.Hurried + rep.RobotsViolations, MinGapMS: float64(rep.MinGap.Microseconds()) / 1000}
	g.Coverage = float64(g.Pages) / float64(g.Expected)
	if g.Pages > 0 {
		g.Overlap = float64(rep.Duplicates) / float64(g.Pages)
	}
	g.loseLinks(f.world, diff.Missing, t)
	g.loseRecords(f.world, expected, diff.Missing, records)
	f.exchanged(&g)
	f.balances(&g, all)
	f.takeovers(&g, all, expected, t)
	g.Contra = f.contravariance()
	g.Offences = offences(all, f.o.Delay-f.o.Tolerance(), f.nameOf, f.began)
	if f.o.Partition == "geo" {
		km := f.medianKM(all)
		g.MedianKM = &km
	}
	for _, v := range slices.Backward(all) {
		if v.Page {
			g.Seconds = v.At.Sub(f.began).Seconds()
			break
		}
	}
	return g
}

// loseLinks counts the missing pages to which a fetched page or the seeds linked.
func (g *Figures) loseLinks(w *crawltest.World, missing []string, t *told) {
	lost := map[string]bool{}
	for _, u := range missing {
		lost[u] = true
	}
	heard := map[string]bool{}
	for _, u := range w.Seeds() {
		heard[u] = true
	}
	for u := range w.Fetched() {
		for _, to := range t.by(u) {
			heard[to] = true
		}
	}
	for _, u := range missing {
		if heard[u] {
			g.LinksLost++
			g.name("link " + u)
		}
	}
}

func (g *Figures) name(what string) {
	if len(g.First) < firstLost {
		g.First = append(g.First, what)
	}
}

// loseRecords compares the records with the test web's responses.
func (g *Figures) loseRecords(w *crawltest.World, expected, missing []string,
	records map[partition.Key][]store.Record) {
	for _, u := range expected {
		p, ok := w.Page(u)
		if _, gone := slices.BinarySearch(missing, u); gone || !ok || p.Status != http.StatusOK {
			continue
		}
		k, err := partition.ParseKey(u)
		found := records[k]
		if len(found) > 1 {
			g.RecordsTwice += len(found) - 1
		}
		if err != nil || !slices.ContainsFunc(found, func(r store.Record) bool {
			return r.Status == http.StatusOK && (p.NoIndex || strings.Contains(r.Text, p.Token))
		}) {
			g.RecordsLost++
			g.name("record " + u)
		}
	}
}

// exchanged counts what the peers sent each other.
func (f *fleet) exchanged(g *Figures) {
	var all status
	for _, m := range f.members {
		all = all.plus(m.total())
	}
	if g.Pages > 0 {
		g.URLs, g.Bytes = float64(all.LinksOut)/float64(g.Pages), float64(all.BytesOut)/float64(g.Pages)
	}
}

// balances compares the most loaded peer with the mean. Every peer here has capacity 1.
func (f *fleet) balances(g *Figures, all []crawltest.Visit) {
	most, sum, n := 0, 0, 0
	for _, m := range f.members {
		s, _, up := m.present()
		if up {
			most, sum, n = max(most, s.Slices), sum+s.Slices, n+1
		}
	}
	if sum > 0 {
		b := float64(most) * float64(n) / float64(sum)
		g.Balance = &b
	}
	pages, busy := map[netip.Addr]int{}, 0
	for _, v := range all {
		if v.Page {
			pages[v.From]++
			busy++
		}
	}
	for _, k := range pages {
		g.BalancePages = max(g.BalancePages, float64(k)*float64(f.lived())/float64(busy))
	}
}

// takeovers sets the takeover figures: for each kill, and over the sites of all kills.
func (f *fleet) takeovers(g *Figures, all []crawltest.Visit, expected []string, t *told) {
	wanted := map[string]bool{}
	for _, u := range expected {
		wanted[u] = true
	}
	sites := map[string]int{}
	for s := range f.world.Sites() {
		if u, err := url.Parse(f.world.Home(s)); err == nil {
			sites[u.Host] = s
		}
	}
	site := func(text string) int {
		if u, err := url.Parse(text); err == nil {
			if s, ok := sites[u.Host]; ok {
				return s
			}
		}
		return -1
	}
	var waits []time.Duration
	others := 0.0
	for _, k := range f.kills {
		one := Kill{At: k.at.Sub(f.began).Seconds(), Peer: k.victim.spec.Name, Cut: k.cut}
		for _, w := range takeovers(all, t, site, wanted, k.at, k.victim.from, f.ended) {
			waits = append(waits, w.after)
			one.Sites++
			one.Slowest = f.world.Home(w.site) // the quickest comes first
			if w.by.IsValid() && w.by != k.victim.from {
				one.ByOthers++
			}
		}
		if own := waits[len(waits)-one.Sites:]; len(own) > 0 {
			one.Longest, one.Median = slices.Max(own).Seconds(), median(own).Seconds()
		}
		others += float64(one.ByOthers)
		g.Each = append(g.Each, one)
	}
	if len(waits) > 0 {
		worst, mid := slices.Max(waits).Seconds(), median(waits).Seconds()
		others /= float64(len(waits))
		g.Takeover, g.TakeoverMid, g.ByOthers = &worst, &mid, &others
	}
}

// shaken is how long a kill excludes a peer's Keys from the count of a join.
const shaken = 20 * time.Second

// contravariance compares the owners before and after the first join.
func (f *fleet) contravariance() *float64 {
	if len(f.before) != sampleKeys || len(f.after) != sampleKeys {
		return nil
	}
	struck := map[string]bool{}
	for _, k := range f.kills {
		if k.at.After(f.joined.Add(-shaken)) && k.at.Before(f.joined.Add(settleJoin)) {
			struck[k.victim.name()] = true
		}
	}
	counted, moved := 0, 0
	for i := range f.before {
		if struck[f.before[i]] || struck[f.after[i]] {
			continue
		}
		counted++
		if f.before[i] != f.after[i] {
			moved++
		}
	}
	if counted == 0 {
		return nil
	}
	c := float64(moved) / float64(counted) * float64(f.o.Peers+1)
	return &c
}

// nameOf returns the peer that sends requests from an address.
func (f *fleet) nameOf(a netip.Addr) string {
	for _, m := range f.members {
		if m.from == a {
			return m.spec.Name
		}
	}
	return a.String()
}

func (f *fleet) medianKM(all []crawltest.Visit) float64 {
	var far []float64
	for s, from := range busiest(all) {
		p, ok := f.world.Place(s)
		for _, m := range f.members {
			if ok && m.from == from && m.spec.Location != nil {
				far = append(far, km(p.Lat, p.Lon, m.spec.Location.Lat, m.spec.Location.Lon))
			}
		}
	}
	return median(far)
}

// records returns all records at the end. For the swarm this is one peer's export. For the
// baseline it is the content of all peers' files.
func (f *fleet) records() (map[partition.Key][]store.Record, error) {
	all := map[partition.Key][]store.Record{}
	keep := func(r store.Record) { all[r.Key] = append(all[r.Key], r) }
	if !f.naive {
		name := filepath.Join(f.dir, "export.jsonl")
		last := f.members[len(f.members)-1]
		if !last.up() {
			last = f.members[0]
		}
		_, err := last.ask(order{Do: doExport, File: name}, 2*time.Minute)
		return all, errors.Join(err, readRecords(name, keep))
	}
	for _, m := range f.members {
		if m.name() == "" {
			continue
		}
		if err := readRecords(filepath.Join(m.spec.Dir, "records.jsonl"), keep); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// writeVisits writes what the server saw next to the peers' logs, one line of JSON each, for a
// user who keeps the directory.
func (f *fleet) writeVisits() error {
	file, err := os.Create(filepath.Join(f.dir, f.label+".visits.jsonl"))
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	e := json.NewEncoder(w)
	for _, v := range f.visits.Sorted() {
		err = errors.Join(err, e.Encode(v))
	}
	return errors.Join(err, w.Flush(), file.Close())
}

// readRecords reads lines of records. It skips a last line that a kill cut short.
func readRecords(name string, each func(store.Record)) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	d := json.NewDecoder(bufio.NewReader(file))
	for {
		var r store.Record
		switch err := d.Decode(&r); {
		case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
		each(r)
	}
}
