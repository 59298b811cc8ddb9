package community

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/echo-node/echo-node/crawler/judge/duplicates"
	"github.com/echo-node/echo-node/crawler/judge/lang"
	"github.com/echo-node/echo-node/partition/geo"
)

// adder adds one piece of evidence.
type adder func(kind, text string, weight float64)

// profile adds the evidence of what an account says about itself.
func (j *Judge) profile(p Profile, add adder) {
	hints := geo.Hints{Language: p.Lang, TimeZone: p.TimeZone}
	if w, ok := j.at(clip(p.Location, MaxField), hints); ok {
		add("place", p.Location, weightPlace*w)
	}
	said := []string{p.Bio, p.Location}
	for _, f := range p.Fields[:min(len(p.Fields), MaxFields)] {
		said = append(said, f.Value)
		if slices.ContainsFunc(j.c.Origin, func(o string) bool { return fold(o) == fold(f.Name) }) {
			if w, ok := j.at(clip(f.Value, MaxField), geo.Hints{}); ok {
				add("origin", f.Name+": "+f.Value, weightBorn*w)
			}
		}
	}
	for _, t := range said {
		j.origin(fold(clip(t, MaxField)), add)
	}
	text := fold(clip(strings.Join(append(said, p.Name), "\n"), 4*MaxField))
	listed("word", j.words.in(text), weightWord, mostWords, add)
	listed("word", j.against.in(text), -weightWord, mostWords, add)
	name := fold(clip(p.Name, MaxField))
	listed("name", j.names.in(name), weightName, mostNames, add)
	listed("name", j.aliens.in(name), -weightName, mostNames, add)
	if zone := strings.ToLower(p.TimeZone); j.zones[zone] {
		add("zone", p.TimeZone, weightZone)
	} else if zone != "" && len(j.zones) > 0 {
		add("zone", p.TimeZone, -weightZone)
	}
	j.tag(p.Lang, add)
	if u, err := url.Parse(p.URL); err == nil && u.Hostname() != "" {
		host := strings.ToLower(u.Hostname())
		under := func(d string) bool { return strings.HasSuffix(host, d) }
		if slices.ContainsFunc(j.c.Domains, under) {
			add("domain", host, weightDomain)
		}
		if slices.ContainsFunc(j.c.NotDomains, under) {
			add("domain", host, -weightDomain)
		}
	}
}

// at returns the confidence of a place, positive for a place of the community and negative for one
// elsewhere. It returns false when text names no known place.
func (j *Judge) at(text string, hints geo.Hints) (float64, bool) {
	if text == "" {
		return 0, false
	}
	r := j.places.Resolve(text, hints)
	if r.Place == nil {
		return 0, false
	}
	if slices.Contains(j.c.Countries, r.Place.Country) &&
		(len(j.c.Regions) == 0 || slices.Contains(j.c.Regions, r.Place.Admin1)) {
		return r.Confidence, true
	}
	return -r.Confidence, true
}

// origin handles phrases such as "natural de Viseu": up to three words after the phrase are a
// place.
func (j *Judge) origin(text string, add adder) {
	for _, phrase := range j.born {
		_, rest, found := strings.Cut(text, phrase)
		if !found {
			continue
		}
		names := strings.Fields(rest)
		for n := min(3, len(names)); n > 0; n-- {
			place := strings.Join(names[:n], " ")
			if w, ok := j.at(place, geo.Hints{}); ok && math.Abs(w) >= 0.5 {
				add("origin", strings.TrimSpace(phrase)+" "+place, weightBorn*w)
				return
			}
		}
	}
}

// listed adds evidence for the words found in a list: weight for each word, up to most.
func listed(kind string, found []string, weight, most float64, add adder) {
	if len(found) == 0 {
		return
	}
	w := math.Copysign(min(most, math.Abs(weight)*float64(len(found))), weight)
	add(kind, strings.Join(found, ", "), w)
}

// tag adds evidence for the interface language of the account.
func (j *Judge) tag(tag string, add adder) {
	switch base, _, _ := strings.Cut(tag, "-"); {
	case tag == "":
	case slices.Contains(j.c.Languages, tag):
		add("tag", tag, weightTag)
	case slices.Contains(j.c.Rivals, tag):
		add("tag", tag, -weightRivalTag)
	case slices.Contains(j.c.Shared, base):
		add("tag", tag, weightShared)
	case base != "en": // en is the default of most services
		add("tag", tag, -weightTag)
	}
}

// fewTexts is the number of judged texts that give half the weight of many. The confidence of a
// language's variety is calibrated already, so there this is only caution.
const fewTexts = 3.0

// lives reduces the weight of the evidence for where an account lives. Three facts that say the
// same are not three times as certain. And an account that writes the language of one country and
// lives in the other has moved. wrote is the evidence of the language from enough texts.
func lives(all []Evidence, wrote float64) {
	sum := 0.0
	for _, e := range all {
		if isHome(e.Kind) {
			sum += e.Weight
		}
	}
	scale := 1.0
	if math.Abs(sum) > mostHome {
		scale = mostHome / math.Abs(sum)
	}
	if wrote*sum < 0 {
		scale *= emigrant
	}
	for i := range all {
		if isHome(all[i].Kind) {
			all[i].Weight = round(all[i].Weight * scale)
		}
	}
}

func isHome(kind string) bool { return kind == "place" || kind == "zone" || kind == "domain" }

// moved is the number of judged texts from which a language outweighs where somebody lives.
const moved = 8

// writing adds evidence for the language that the person writes and for hashtags. It returns the
// evidence of a variety that is known from enough texts, otherwise 0.
func (j *Judge) writing(texts []string, add adder) (variety float64) {
	person := j.langs.Person()
	tags := map[string]bool{}
	for _, t := range texts {
		person.Add(t)
		for w := range strings.FieldsSeq(clip(t, MaxField)) {
			if tag, ok := strings.CutPrefix(w, "#"); ok {
				for _, found := range j.hashtags.in(fold(tag)) {
					tags[found] = true
				}
			}
		}
	}
	var found []string
	for tag := range tags {
		found = append(found, "#"+tag)
	}
	slices.Sort(found)
	listed("hashtag", found, weightHashtag, mostHashtags, add)

	v := person.Verdict()
	if v.Judged == 0 || v.Lang == lang.Und {
		return 0
	}
	enough := float64(v.Judged) / (float64(v.Judged) + fewTexts)
	share := shareOf(v)
	text := fmt.Sprintf("%s in %d texts (%.2f), %.0f %% of them", v.Lang, v.Judged, v.Confidence, 100*share)
	sure := min(1, math.Log(v.Confidence/(1-min(v.Confidence, 0.999)))/3) // 1 from 0.95 on
	// People learn the local language, so 60 % of the texts is full evidence.
	mostly := min(1, share/0.6)
	var w float64
	switch name := v.Lang.String(); {
	case slices.Contains(j.c.Languages, name) && len(j.c.Rivals) > 0:
		w = weightWriting * sure * enough * mostly
		variety = w
	case slices.Contains(j.c.Languages, name):
		w = weightOwn * enough * mostly
	case slices.Contains(j.c.Rivals, name):
		w = -weightWriting * sure * enough * mostly
		variety = w
	case slices.Contains(j.c.Shared, name):
		w = weightShared
	default:
		// An account that also writes the community's language may be a member abroad.
		w = -weightForeign * enough * mostly * (1 - min(1, j.ownShare(v)/alsoOwn))
	}
	add("language", text, w)
	if v.Judged < moved {
		return 0
	}
	return variety
}

// alsoOwn is the share of an account's texts in the community's language at which texts in another
// language no longer count against belonging.
const alsoOwn = 0.4

// ownShare returns the share of an account's texts in a language of the community.
func (j *Judge) ownShare(v lang.PersonVerdict) (sum float64) {
	for _, s := range v.Shares {
		if name := s.Lang.String(); slices.Contains(j.c.Languages, name) || slices.Contains(j.c.Shared, name) {
			sum += s.Share
		}
	}
	return sum
}

// shareOf returns the share of an account's texts in its main language. It counts all varieties of
// Portuguese together, because the variety of a single text may be wrong.
func shareOf(v lang.PersonVerdict) float64 {
	base, _, _ := strings.Cut(v.Lang.String(), "-")
	sum := 0.0
	for _, s := range v.Shares {
		if b, _, _ := strings.Cut(s.Lang.String(), "-"); b == base {
			sum += s.Share
		}
	}
	return sum
}

// neighbours adds evidence of the verdicts of an account's neighbours. Accounts it follows, its
// followers and the accounts it mentions are separate pieces of evidence. Added up, an account with
// many followers that follows few would be what its followers are. About 79 % of the people that a
// member mentions are members (Oliveira 2011). Equal numbers of in and out are no evidence.
func (j *Judge) neighbours(e Edges, add adder) {
	var lean, in, out float64
	for _, x := range []struct {
		c Counts
		w float64
	}{{e.Follows, weightFollows}, {e.Followers, weightFollowers}, {e.Mentions, weightMentions},
		{e.MentionedBy, weightMentions}} {
		yes, no := float64(max(x.c.In, 0)), float64(max(x.c.Out, 0))
		in, out = in+yes, out+no
		n := yes + no
		lean += float64(x.w * math.Log((yes+1)/(no+1)) * n / (n + 4))
	}
	if in+out == 0 {
		return
	}
	add("neighbours", fmt.Sprintf("%.0f in, %.0f out", in, out), max(-mostNeighbours, min(mostNeighbours, lean)))
}

// A machine repeats itself: it has at least machineTexts texts, and at least the share machineShare
// of them are copies of others. Digits and links do not count.
const (
	machineTexts = 8
	machineShare = 0.5
)

// machine reports whether the account is run by a program, and adds the evidence for it.
func machine(p Profile, texts []string, add adder) (is bool) {
	if p.Bot {
		add("machine", "declared", -weightBot)
	}
	if len(texts) < machineTexts {
		return p.Bot
	}
	g := duplicates.NewGrouper(duplicates.Options{})
	for i, t := range texts {
		g.Add(duplicates.Text{ID: fmt.Sprint(i), Text: wordsAlone(clip(t, MaxField)), Time: int64(i)})
	}
	repeated := 0
	for _, group := range g.Groups() {
		repeated += len(group) - 1
	}
	share := float64(repeated) / float64(len(texts))
	if share < machineShare {
		return p.Bot
	}
	add("machine", fmt.Sprintf("%.0f %% of its texts repeat others", 100*share), -weightMachine)
	return true
}

// wordsAlone returns text without digits: in a weather report the numbers change, the sentence does
// not.
func wordsAlone(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
}
