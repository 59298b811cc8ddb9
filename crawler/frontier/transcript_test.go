package frontier

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/partition"
)

var update = flag.Bool("update", false, "write the transcripts as they are answered now")

// storeRow is a row of the fake store behind a transcript.
type storeRow struct {
	slice    partition.Slice
	site     partition.Site
	key      partition.Key
	priority int
	at       time.Time
	out      bool // the frontier returned it and it was not put back
}

// play is a Frontier with a fake store and a fake clock.
type play struct {
	f        *Frontier
	rows     []*storeRow
	now      time.Time
	delay    time.Duration
	inFlight map[partition.Site]*storeRow
	steps    map[partition.Site]Step // the Fetch steps of inFlight
}

var epoch = time.Unix(1_700_000_000, 0)

// TestTranscripts replays testdata/*.txt. Each line is a command. The lines below it that begin
// with "= " are the expected answer. Commands:
//
//	options window=N rows=N delay=D
//	add SITE KEY [slice=N] [priority=N] [in=D]   adds a row now, due in D
//	advance D
//	next                          runs the steps up to a fetch or a wait
//	done SITE [in=D] [again]      the fetch ended; due again in D
//	slow SITE D                   the fetch ended; the site allows the next request in D
//	keep N...                     the slices that are kept
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			p := &play{f: New(Options{}), now: epoch, delay: time.Second, inFlight: map[partition.Site]*storeRow{},
				steps: map[partition.Site]Step{}}
			for in := bufio.NewScanner(bytes.NewReader(want)); in.Scan(); {
				line := in.Text()
				if strings.HasPrefix(line, "= ") {
					continue
				}
				fmt.Fprintln(&got, line)
				if line != "" && line[0] != '#' {
					for _, answer := range p.do(t, strings.Fields(line)) {
						fmt.Fprintln(&got, "= "+answer)
					}
				}
			}
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got.String() != string(want) {
				t.Errorf("answers differ; now:\n%s", got.String())
			}
		})
	}
}

func (p *play) do(t *testing.T, words []string) []string {
	arg := map[string]string{}
	var plain []string
	for _, w := range words[1:] {
		if k, v, ok := strings.Cut(w, "="); ok {
			arg[k] = v
		} else {
			plain = append(plain, w)
		}
	}
	num := func(k string) int { n, _ := strconv.Atoi(arg[k]); return n }
	dur := func(text string) time.Duration {
		d, err := time.ParseDuration(text)
		if err != nil && text != "" {
			t.Fatalf("%v: %v", words, err)
		}
		return d
	}
	switch words[0] {
	case "options":
		p.f = New(Options{Window: num("window"), MaxRows: num("rows")})
		if arg["delay"] != "" {
			p.delay = dur(arg["delay"])
		}
	case "add":
		r := &storeRow{slice: partition.Slice(num("slice")), site: partition.Site(plain[0]),
			key:      partition.Key(plain[1]),
			priority: num("priority"), at: p.now.Add(dur(arg["in"]))}
		p.rows = append(p.rows, r)
		due := time.Time{}
		if arg["in"] != "" {
			due = r.at
		}
		p.f.Wake(r.slice, r.site, time.Time{}, due)
	case "advance":
		p.now = p.now.Add(dur(plain[0]))
	case "next":
		return p.next()
	case "done", "slow":
		return p.done(plain, dur, arg["in"], words[0] == "slow")
	case "keep":
		p.f.Keep(func(sl partition.Slice) bool {
			for _, n := range plain {
				if n == strconv.Itoa(int(sl)) {
					return true
				}
			}
			return false
		})
	default:
		t.Fatalf("unknown command %v", words)
	}
	return nil
}

func (p *play) next() (out []string) {
	for {
		st := p.f.Next(p.now)
		switch st.Act {
		case Read:
			rows, later, more := p.read(st)
			p.f.Fill(st, rows, later, more)
			out = append(out, fmt.Sprintf("read %s, at most %d: %d rows", st.Site, st.Limit, len(rows)))
		case Fetch:
			r := p.row(st.Row.Key)
			r.out = true
			p.inFlight[st.Site], p.steps[st.Site] = r, st
			return append(out, fmt.Sprintf("fetch %s %s", st.Site, st.Row.Key))
		default:
			if st.At.IsZero() {
				return append(out, "nothing")
			}
			return append(out, "wait "+st.At.Sub(p.now).String())
		}
	}
}

func (p *play) done(plain []string, dur func(string) time.Duration, in string, slow bool) []string {
	s := partition.Site(plain[0])
	r, quiet := p.inFlight[s], p.delay
	delete(p.inFlight, s)
	later := time.Time{}
	var again *Row
	switch {
	case slow:
		quiet = dur(plain[1])
		p.drop(r)
	case len(plain) > 1: // again
		again = &Row{Key: r.key, Priority: r.priority}
	case in != "":
		r.at, r.out = p.now.Add(dur(in)), false
		later = r.at
	default:
		p.drop(r)
	}
	p.f.Done(p.steps[s], p.now.Add(quiet), later, again)
	return nil
}

// read returns what the store would answer: due rows by priority, then by time of addition.
func (p *play) read(st Step) (rows []Row, later time.Time, more bool) {
	for priority := 0; priority < 256; priority++ {
		for _, r := range p.rows {
			switch {
			case r.site != st.Site || r.slice != st.Slice || r.priority != priority:
			case r.at.After(p.now):
				if later.IsZero() || r.at.Before(later) {
					later = r.at
				}
			case len(rows) == st.Limit:
				more = true
			default:
				rows = append(rows, Row{Key: r.key, Priority: r.priority})
			}
		}
	}
	return rows, later, more
}

func (p *play) row(k partition.Key) *storeRow {
	for _, r := range p.rows {
		if r.key == k {
			return r
		}
	}
	return nil
}

func (p *play) drop(r *storeRow) {
	for i := range p.rows {
		if p.rows[i] == r {
			p.rows = append(p.rows[:i], p.rows[i+1:]...)
			return
		}
	}
}
