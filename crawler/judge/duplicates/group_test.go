package duplicates

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/crawler/judge/duplicates/duplicatestest"
)

func groupOf(groups []Group, id string) string {
	for _, g := range groups {
		for _, m := range g {
			if m.ID == id {
				return m.Representative
			}
		}
	}
	return ""
}

func groupTexts(opts Options, texts ...Text) []Group { return GroupAll(slices.Values(texts), opts) }

func TestGroups(t *testing.T) {
	const long = "governo anuncia novas medidas para a habitação nas grandes cidades do litoral e do interior"
	groups := groupTexts(Options{},
		Text{ID: "7", Time: 7, Text: "RT @ana: " + long},
		Text{ID: "1", Time: 1, Text: long},
		Text{ID: "2", Time: 2, Text: long + " Retweeted by rui"},
		Text{ID: "3", Time: 3, Text: long},
		Text{ID: "4", Time: 4, Text: strings.Replace(long, "anuncia", "aprova", 1)},
		Text{ID: "5", Time: 5, Text: strings.Replace(long, "anuncia", "não anuncia", 1)},
		Text{ID: "6", Time: 6, Text: "outra coisa completamente diferente sobre o jogo de ontem"},
		Text{ID: "8", Time: 8, Text: long, Repost: true},
	)
	name := fmt.Sprintf("%016x", Hash("1"))
	want := []Group{{
		{name, "1", "1", 0, Representative},
		{name, "2", "1", 0, ByOfficial},
		{name, "3", "1", 0, ByExact},
		{name, "4", "1", 1, ByEdit},
		{name, "7", "1", 0, BySimhash},
		{name, "8", "1", 0, ByOfficial},
	}}
	if diff := cmp.Diff(want, groups); diff != "" {
		t.Error(diff)
	}
}

// A chain A-B-C in which A and C are no copies: C stays out of A's group.
func TestChain(t *testing.T) {
	a := strings.Fields("um dois três quatro cinco seis sete oito nove dez onze")
	b, c := slices.Clone(a), slices.Clone(a)
	b[2], c[2], c[8] = "outro", "outro", "diverso"
	groups := groupTexts(Options{}, Text{ID: "a", Text: strings.Join(a, " ")},
		Text{ID: "b", Text: strings.Join(b, " ")}, Text{ID: "c", Text: strings.Join(c, " ")})
	if len(groups) != 1 || len(groups[0]) != 2 || groupOf(groups, "b") != "a" || groupOf(groups, "c") != "" {
		t.Errorf("groups %v", groups)
	}
}

// corpus returns texts with every kind of copy, and texts without copies.
func corpus(rng *rand.Rand, n int) []Text {
	v := duplicatestest.NewVocabulary(rng.Uint64(), 300)
	var texts []Text
	for len(texts) < n {
		base := v.Text(2 + rng.IntN(16))
		for range 1 + rng.IntN(4) {
			text := strings.Join(base, " ")
			switch rng.IntN(7) {
			case 0:
				text = "RT @u: " + text
			case 1:
				text += " Retweeted by w"
			case 2:
				text = strings.Join(v.Edit(base, 1), " ")
			case 3:
				rng.Shuffle(len(base), func(i, j int) { base[i], base[j] = base[j], base[i] })
				text = strings.Join(base, " ")
			case 4:
				text = "olha isto " + text
			}
			texts = append(texts, Text{ID: fmt.Sprint(len(texts)), Time: rng.Int64N(50), Text: text})
		}
	}
	return texts
}

func TestOrderDoesNotCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := newRand(rapid.Uint64().Draw(t, "seed"))
		opts := Options{Paper: rapid.Bool().Draw(t, "paper"), Distance: rapid.IntRange(-1, 8).Draw(t, "distance")}
		texts := corpus(rng, 40)
		want := GroupAll(slices.Values(texts), opts)
		rng.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
		if diff := cmp.Diff(want, GroupAll(slices.Values(texts), opts)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// joinPairs returns the groups of pairs from one or more owners of buckets. The result depends only
// on the set of pairs: order and repetition do not count.
//
// Same texts stay together. In order of time, a text joins the nearest representative before it
// that it has a pair with (by reason, then distance, then time), or represents itself.
func joinPairs(pairs []Pair) []Group {
	refs := make([]Ref, 0, 2*len(pairs))
	for _, p := range pairs {
		refs = append(refs, p.A, p.B)
	}
	slices.SortFunc(refs, Ref.compare)
	refs = slices.Compact(refs)
	at := make(map[Ref]int32, len(refs))
	for i, r := range refs {
		at[r] = int32(i)
	}
	links := make([]link, 0, len(pairs))
	for _, p := range pairs {
		if a, b := at[p.A], at[p.B]; a < b {
			links = append(links, link{a, b, p.Match})
		}
	}
	return join(len(refs), links, func(i int32) Ref { return refs[i] })
}

// Five owners of buckets, each with the fingerprints of its own buckets only, find the groups that one
// owner of all finds. So do owners that receive the texts one by one in any order.
func TestOwnersFindTheSameGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := newRand(rapid.Uint64().Draw(t, "seed"))
		opts := Options{Paper: rapid.Bool().Draw(t, "paper")}
		texts := corpus(rng, 40)
		want := GroupAll(slices.Values(texts), opts)
		rng.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
		if diff := cmp.Diff(want, joinPairs(byShards(opts, texts, 5))); diff != "" {
			t.Fatal("shards", diff)
		}
		// If the texts come one by one, a text may get a weaker reason because its earlier equal
		// text came late. The members of each group are the same.
		if diff := cmp.Diff(members(want), members(joinPairs(byStream(opts, texts)))); diff != "" {
			t.Fatal("stream", diff)
		}
	})
}

// Two texts are one word apart. Their fingerprints are far from each other and share a block by
// chance. An owner that receives texts one by one does not pair them, like a peer with all texts.
func TestABlockPairsOnlyTheNear(t *testing.T) {
	texts := []Text{
		{ID: "33", Time: 0, Text: "olha isto sopu vamepe to da fepolole fa docodu pitu"},
		{ID: "32", Time: 36, Text: "sopu vamepe to cibece fepolole fa docodu pitu"},
		{ID: "34", Time: 49, Text: "sopu vamepe to da fepolole fa docodu pitu"},
	}
	want := members(groupTexts(Options{}, texts...))
	if diff := cmp.Diff(want, members(joinPairs(byStream(Options{}, texts)))); diff != "" {
		t.Fatal(diff)
	}
}

func byShards(opts Options, texts []Text, n int) []Pair {
	var pairs []Pair
	for shard := range n {
		owns := func(b Bucket) bool { return int(b.Slot()%uint64(n)) == shard }
		var fingerprints []Fingerprint
		for _, text := range texts {
			p, err := DecodeFingerprint(NewFingerprint(text).Append(nil)) // as sent
			if err != nil {
				panic(err)
			}
			if slices.ContainsFunc(opts.Buckets(nil, p), owns) {
				fingerprints = append(fingerprints, p)
			}
		}
		pairs = append(pairs, opts.Pairs(fingerprints, owns)...)
	}
	return pairs
}

func byStream(opts Options, texts []Text) []Pair {
	var pairs []Pair
	held := make(map[Bucket][]Fingerprint)
	for _, text := range texts {
		p := NewFingerprint(text)
		for _, b := range opts.Buckets(nil, p) {
			found := opts.Match(nil, b, p, held[b])
			pairs = append(pairs, found...)
			if !slices.ContainsFunc(found, func(x Pair) bool { return x.Same && x.B == p.Ref() }) {
				held[b] = append(held[b], p)
			}
		}
	}
	return pairs
}

func members(groups []Group) [][]string {
	var out [][]string
	for _, g := range groups {
		var ids []string
		for _, m := range g {
			ids = append(ids, m.ID)
		}
		out = append(out, ids)
	}
	return out
}

func TestMarksOnlyTextsMatchNothing(t *testing.T) {
	g := NewGrouper(Options{})
	p := NewGrouper(Options{Paper: true})
	for i := range 1000 {
		text := Text{ID: fmt.Sprint(i), Text: []string{fmt.Sprintf("RT @user%d:", i), "@a @b", "转发微博", "🎉 RT",
			"Retweeted by x"}[i%5]}
		g.Add(text)
		p.Add(text)
	}
	if groups := append(g.Groups(), p.Groups()...); len(groups) != 0 {
		t.Errorf("%d groups, the first %v", len(groups), groups[0])
	}
}

func TestShortTextsMatchOnlyExactly(t *testing.T) {
	groups := groupTexts(Options{}, Text{ID: "1", Text: "bom dia"}, Text{ID: "2", Text: "bom dia"},
		Text{ID: "3", Text: "dia bom"}, Text{ID: "4", Text: "RT @a: bom dia"}, Text{ID: "5", Text: "Bom dia!"})
	if len(groups) != 1 || len(groups[0]) != 2 || groups[0][1].ID != "2" || groups[0][1].Reason != ByExact {
		t.Errorf("groups %v", groups)
	}
}
