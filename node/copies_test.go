package node_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/crawler/judge/duplicates"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
)

// press is a world of newspapers, each on its own address, that print each other's articles. They
// print them unchanged, with a word changed, or with a word before them. Some deny the articles.
type press struct {
	pages map[string]string      // by host and path
	texts map[partition.Key]text // the pages that may be copies
	gone  atomic.Bool            // pages of withdrawn articles say noindex, or are not there
}

type text struct {
	text string
	time int64
}

func paper(i int) string { return fmt.Sprintf("127.77.210.%d", i+1) }

func newPress(t *testing.T, papers, articles int) *press {
	t.Helper()
	rng := rand.New(rand.NewPCG(4, 7))
	words := strings.Fields(`farol vila primavera barco praia vento pedra ponte mercado escola jornal cidade autarca obra rua praça comboio linha estação
 biblioteca livro leitor noite manhã chuva inverno pescador rede peixe porto navio marinheiro carta mapa viagem ilha montanha rio margem moinho pão forno
 casa janela porta telhado jardim árvore flor fruto campo trigo vinho festa música dança sino torre igreja largo feira gente`)
	p := &press{pages: map[string]string{}, texts: map[partition.Key]text{}}
	put := func(host, path, body string, day int, at int) {
		head, when := "", int64(math.MaxInt64)
		if day > 0 {
			date := time.Date(2019, 1, day, 12, 0, 0, 0, time.UTC)
			head, when = `<meta property="article:published_time" content="`+date.Format(time.RFC3339)+`">`, date.Unix()
		}
		p.pages[host+path] = "<!doctype html><html><head><title>Artigo " + fmt.Sprint(at) + "</title>" + head +
			"</head><body><p>" + body + "</p></body></html>"
		k, err := partition.ParseKey("http://" + host + path)
		if err != nil {
			t.Fatal(err)
		}
		if len(body) >= 200 {
			p.texts[k] = text{body, when}
		}
	}
	for a := range articles {
		base := make([]string, 40+rng.IntN(60))
		for i := range base {
			base[i] = words[rng.IntN(len(words))]
		}
		for i := range 2 + rng.IntN(5) {
			now := slices.Clone(base)
			switch rng.IntN(6) {
			case 0:
				now[rng.IntN(len(now))] = "outrora"
			case 1:
				now = append([]string{"segundo", "consta"}, now...)
			case 2:
				now = append([]string{"não"}, now...)
			}
			put(paper((a*5+i*3)%papers), fmt.Sprintf("/artigo%d", a), strings.Join(now, " "),
				rng.IntN(4)*(1+rng.IntN(9)), a)
		}
	}
	for i := range 4 { // no copies: too short, or only the same few words around them
		put(paper(i), "/breve", "a praia fecha hoje", 0, 100)
	}
	return p
}

func (p *press) answer(r *http.Request) *http.Response {
	host := r.URL.Hostname()
	if !strings.HasPrefix(host, "127.77.210.") {
		return nil
	}
	w := httptest.NewRecorder()
	page, ok := p.pages[host+r.URL.Path]
	if p.gone.Load() {
		switch host {
		case paper(0):
			page = strings.Replace(page, "<head>", `<head><meta name="robots" content="noindex">`, 1)
		case paper(1), paper(2): // another text, different on each page
			words := make([]string, 60)
			for i := range words {
				words[i] = fmt.Sprintf("assunto%x", xxhash.Sum64String(fmt.Sprint(host, r.URL.Path, i))%100_000)
			}
			page = "<html><head><title>outro</title></head><body><p>" + strings.Join(words, " ") + "</p></body></html>"
		}
	}
	switch {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	default:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, page)
	}
	resp := w.Result()
	resp.Request = r
	return resp
}

func (p *press) keys() (out []partition.Key) {
	for at := range p.pages {
		out = append(out, partition.Key("web:http://"+at))
	}
	slices.Sort(out)
	return out
}

// truth returns the group of each text that has copies, computed from all texts.
func (p *press) truth() map[partition.Key]string {
	g := duplicates.NewGrouper(duplicates.Options{})
	for k, x := range p.texts {
		g.Add(duplicates.Text{ID: string(k), Text: x.text, Time: x.time})
	}
	out := map[partition.Key]string{}
	for _, group := range g.Groups() {
		var b strings.Builder
		for _, m := range group {
			fmt.Fprintf(&b, "%s %s %d\n", m.ID, m.Reason, m.Distance)
		}
		for _, m := range group {
			out[partition.Key(m.ID)] = m.Group + "\n" + b.String()
		}
	}
	return out
}

// groups returns what n answers about the copies of each of keys. why is "" if its answers were
// complete.
func groups(n *node.Node, keys []partition.Key) (out map[partition.Key]string, why string) {
	out = map[partition.Key]string{}
	for _, k := range keys {
		time.Sleep(200 * time.Millisecond) // fake time: requests between peers have a credit
		g, err := n.Search().Copies(context.Background(), k, "")
		if err != nil {
			return nil, fmt.Sprintf("%s: %v", k, err)
		}
		if c := g.Coverage; c.SlicesAnswered != c.SlicesTotal || c.Stale || g.More {
			return nil, fmt.Sprintf("%s: %+v, more %v", k, c, g.More)
		}
		if len(g.Members) == 0 {
			continue
		}
		var b strings.Builder
		for _, m := range g.Members {
			fmt.Fprintf(&b, "%s %s %d\n", m.Key, m.Reason, m.Distance)
		}
		out[k] = g.Group + "\n" + b.String()
	}
	return out, ""
}

// agree waits until every peer returns the groups in want for each of their members.
func agree(t *testing.T, s *nodetest.Sim, what string, p *press, want map[partition.Key]string) {
	t.Helper()
	for _, peer := range s.Peers {
		if peer.Node() == nil {
			continue
		}
		s.Until(what+": "+peer.Name+" names the groups", 5*time.Minute, func() string {
			got, why := groups(peer.Node(), p.keys())
			if why == "" {
				why = cmp.Diff(want, got)
			}
			return why
		})
	}
}

func read(t *testing.T, s *nodetest.Sim, p *press) {
	t.Helper()
	asked, err := s.Peers[0].Node().Seed(context.Background(), p.keys())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range asked {
		if a.Answer != "admitted" {
			t.Fatalf("%+v", a)
		}
	}
	s.Until("all is read", time.Hour, func() string {
		for _, k := range p.keys() {
			if shown, err := s.Peers[0].Node().API().Show(context.Background(), k); err != nil || shown.Record == nil {
				return fmt.Sprintf("%s: %v", k, err)
			}
		}
		return ""
	})
}

func pressWorld(p *press) nodetest.SimOptions {
	return nodetest.SimOptions{Seed: 11, World: crawltest.Options{Seed: 5, Sites: 1, Pages: 1}, SliceBits: 6,
		Beside: p.answer}
}

// One peer, and five peers that share the papers, return the same groups as a computation from all
// texts. That holds for every peer and every member of a group. It also holds when one of the five
// has died, and when another has stopped and handed its slices over.
func TestCopiesMeetAcrossPeers(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	p := newPress(t, 12, 7)
	want := p.truth()
	if len(want) < 20 {
		t.Fatalf("%d texts have copies", len(want))
	}
	for _, peers := range []int{1, 5} {
		nodetest.RunSim(t, pressWorld(p), func(s *nodetest.Sim) {
			for range peers {
				s.Add()
			}
			s.Settle(10 * time.Minute)
			read(t, s, p)
			agree(t, s, fmt.Sprintf("of %d peers", peers), p, want)
			if peers == 1 {
				return
			}
			owners := map[string]bool{}
			for k := range want {
				o, err := s.Peers[0].Node().API().Owner(context.Background(), k)
				if err != nil {
					t.Fatal(err)
				}
				owners[o.Replicas[0]] = true
			}
			if len(owners) < 4 {
				t.Errorf("only %d peers have texts that have copies", len(owners))
			}
			s.Crash(s.Peers[1])
			s.Settle(10 * time.Minute)
			agree(t, s, "after a death", p, want)
			if left := s.Peers[2].Node().HandOver(context.Background()); left > 0 {
				t.Errorf("%d slices were not handed over", left)
			}
			s.Crash(s.Peers[2])
			s.Settle(10 * time.Minute)
			agree(t, s, "after a hand-over", p, want)
		})
	}
}

// A page that its site withdraws or changes leaves its group. The rest stays a group.
func TestWithdrawnCopiesLeave(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	p := newPress(t, 12, 4)
	o := pressWorld(p)
	o.Node.Revisit = 10 * time.Minute
	gone := func(k partition.Key) bool {
		return slices.Contains([]string{paper(0), paper(1), paper(2)}, k.Host())
	}
	nodetest.RunSim(t, o, func(s *nodetest.Sim) {
		for range 3 {
			s.Add()
		}
		s.Settle(10 * time.Minute)
		read(t, s, p)
		agree(t, s, "before", p, p.truth())
		left := &press{pages: p.pages, texts: maps.Clone(p.texts)}
		maps.DeleteFunc(left.texts, func(k partition.Key, _ text) bool { return gone(k) })
		if len(left.texts) == len(p.texts) {
			t.Fatal("none of the papers printed anything")
		}
		p.gone.Store(true)
		want := left.truth()
		s.Until("what was taken back is in no group", 12*time.Hour, func() string {
			for k := range p.texts {
				if gone(k) {
					continue
				}
				time.Sleep(200 * time.Millisecond)
				g, err := s.Peers[1].Node().Search().Copies(context.Background(), k, "")
				if err != nil {
					return err.Error()
				}
				for _, m := range g.Members {
					if gone(m.Key) {
						return fmt.Sprintf("%s is a copy of %s", m.Key, k)
					}
				}
				var b strings.Builder
				for _, m := range g.Members {
					fmt.Fprintf(&b, "%s %s %d\n", m.Key, m.Reason, m.Distance)
				}
				if got := g.Group + "\n" + b.String(); len(g.Members) > 0 && got != want[k] || len(g.Members) == 0 &&
					want[k] != "" {
					return fmt.Sprintf("of %s: %s, want %s", k, got, want[k])
				}
			}
			return ""
		})
		for _, k := range p.keys() {
			g, err := s.Peers[0].Node().Search().Copies(context.Background(), k, "")
			if err != nil {
				t.Error(err)
			}
			if k.Host() == paper(0) && (len(g.Members) > 0 || g.Why == "") {
				t.Errorf("%s, noindex: %+v", k, g)
			}
		}
	})
}

// A text that is too short, missing or unknown has no copies, and the answer gives the reason.
func TestWhatHasNoCopies(t *testing.T) {
	p := newPress(t, 8, 1)
	nodetest.RunSim(t, pressWorld(p), func(s *nodetest.Sim) {
		s.Add()
		s.Settle(10 * time.Minute)
		read(t, s, p)
		n := s.Peers[0].Node()
		g, err := n.Search().Copies(context.Background(), partition.Key("web:http://"+paper(0)+"/breve"), "")
		if err != nil || g.Why == "" || len(g.Members) > 0 {
			t.Errorf("%+v, %v", g, err)
		}
		if _, err := n.Search().Copies(context.Background(), "web:http://127.77.210.200/nada", ""); !errors.Is(err,
			api.ErrNotFound) {
			t.Errorf("unknown: %v", err)
		}
		s.Until("the index has the texts", time.Minute, func() string {
			if got := n.Status().Fingerprints; got != int64(len(p.texts)) {
				return fmt.Sprintf("%d prints, %d texts may be copies", got, len(p.texts))
			}
			return ""
		})
	})
}
