package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/judge/community"
	"github.com/echo-node/echo-node/crawler/judge/community/communitytest"
	"github.com/echo-node/echo-node/crawler/social/follow"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// villageAddr is the address of the demo's account server, next to the sites of the test web.
const villageAddr = "127.77.255.1:0"

// villageSeeds is the number of community members with which the demo begins.
const villageSeeds = 5

// villageFanout spreads the server's accounts over the demo's peers.
const villageFanout = 16

// village is a simulated Mastodon server with people of several countries. The demo follows the
// Portuguese ones.
type village struct {
	nation *communitytest.World
	keys   []partition.Key // of the nation's people, in its order
	seeds  []partition.Key
	rules  follow.Rules
	stop   func() error
}

func newVillage(people int) (*village, error) {
	named, err := community.Embedded("portugal")
	if err != nil {
		return nil, err
	}
	judge, err := community.Open(named)
	if err != nil {
		return nil, err
	}
	nation := communitytest.New(communitytest.Options{Seed: 1, People: people})
	w, stop, err := mastodontest.Serve(villageAddr, mastodontest.Options{Seed: 1, People: people, Remote: -1,
		Quiet: true, Rate: -1})
	if err != nil {
		return nil, err
	}
	accts, err := w.Inhabit(nation)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	v := &village{nation: nation, rules: follow.Rules{Follow: follow.Community, Community: named.Name,
		Judge: judge.Judge}, stop: stop}
	for i, a := range accts {
		v.keys = append(v.keys, partition.Key("mastodon:"+a))
		if nation.People[i].Class == communitytest.Home && len(v.seeds) < villageSeeds {
			v.seeds = append(v.seeds, v.keys[i])
		}
	}
	return v, nil
}

// judgedSummary says what the judges found in the crawled data, compared with the truth.
type judgedSummary struct {
	Languages map[string]int `json:"languages"` // of pages
	Copies    int            `json:"copies"`    // pages with the text of another page
	People    int            `json:"people"`    // of the simulated server
	Found     int            `json:"found"`
	// People who follow a member, or whom a member follows, and whose profile was not read.
	Unread    int `json:"not_found"`
	In        int `json:"in"`
	InRight   int `json:"in_right"`
	Out       int `json:"out"`
	OutRight  int `json:"out_right"`
	Undecided int `json:"undecided"`
	Posts     int `json:"posts"`
}

// judged reads all records of the swarm.
func (d *demo) judged(ctx context.Context) (*judgedSummary, error) {
	s := &judgedSummary{Languages: map[string]int{}}
	prints, verdicts := map[string]bool{}, map[partition.Key]string{}
	_, err := d.nodes[0].Search().Export(ctx, api.Export{}, func(r store.Record, _ string) error {
		switch r.Kind {
		case store.KindPage:
			if r.Lang != "" {
				s.Languages[r.Lang]++
			}
			if r.Copies != "" && prints[r.Copies] {
				s.Copies++
			}
			prints[r.Copies] = true
		case store.KindProfile:
			verdicts[r.Key] = r.VerdictWord()
		case store.KindPost:
			s.Posts++
		}
		return nil
	})
	if d.village != nil {
		d.village.tally(s, verdicts)
	}
	return s, err
}

// tally compares verdicts with the truth.
func (v *village) tally(s *judgedSummary, verdicts map[partition.Key]string) {
	s.People = len(v.keys)
	unread := map[partition.Key]bool{}
	for i, k := range v.keys {
		p := v.nation.People[i]
		word, found := verdicts[k]
		if !found {
			continue
		}
		s.Found++
		switch word {
		case community.IsIn:
			if s.In++; p.Member {
				s.InRight++
			}
			for _, n := range slices.Concat(p.Follows, p.Followers) {
				if _, found := verdicts[v.keys[n]]; !found {
					unread[v.keys[n]] = true
				}
			}
		case community.IsOut:
			if s.Out++; !p.Member {
				s.OutRight++
			}
		default:
			s.Undecided++
		}
	}
	s.Unread = len(unread)
}

func (s *judgedSummary) print(w io.Writer) {
	var langs []string
	for _, l := range slices.SortedFunc(maps.Keys(s.Languages),
		func(a, b string) int { return s.Languages[b] - s.Languages[a] }) {
		langs = append(langs, fmt.Sprintf("%s %d", l, s.Languages[l]))
	}
	fmt.Fprintf(w, "judged languages %s; copies %d\n", strings.Join(langs, ", "), s.Copies)
	if s.People > 0 {
		fmt.Fprintf(w, "people %d of %d found: in %d (%d right), out %d (%d right), undecided %d; posts %d; not found %d\n", s.Found, s.People, s.In, s.InRight, s.Out, s.OutRight, s.Undecided, s.Posts, s.Unread)
	}
}
