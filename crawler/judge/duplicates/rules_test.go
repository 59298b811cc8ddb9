package duplicates

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition/racetest"
)

func TestOfficial(t *testing.T) {
	for _, c := range []struct {
		text, content string
		names         []string
	}{
		{"Big news today Retweeted by jasongod", "Big news today", []string{"jasongod"}},
		{"Big news Retweeted by renyuan619 Retweeted by cwxm37", "Big news", []string{"renyuan619", "cwxm37"}},
		{"Big news Retweeted by renyuan619, cwxm37", "Big news", []string{"renyuan619", "cwxm37"}},
		{"Big news Retweeted by renyuan619 and cwxm37", "Big news", []string{"renyuan619", "cwxm37"}},
		{"Big news\nRetweeted by @a @b", "Big news", []string{"a", "b"}},
		{"I was Retweeted by Obama yesterday", "I was Retweeted by Obama yesterday", nil},
		{"I was retweeted by Obama", "I was retweeted by Obama", nil},
		{"UnRetweeted by x", "UnRetweeted by x", nil},
		{"Retweeted by ", "Retweeted by", nil},
		{"Retweeted by jasongod", "", []string{"jasongod"}},
		{"中文内容 Retweeted by 张三", "中文内容", []string{"张三"}},
		{"  plain  ", "plain", nil},
		{"", "", nil},
	} {
		content, names := Official(c.text)
		if content != c.content || !slices.Equal(names, c.names) {
			t.Errorf("Official(%q) = %q %q, want %q %q", c.text, content, names, c.content, c.names)
		}
	}
}

func TestStrip(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"RT@zhangweiguo: the text", "the text"},
		{"RT@uponsnow the text", "the text"},
		{"RT @uponsnow: RT @a: the text", "the text"},
		{"RT RT RT @a: @b: @c: the text", "the text"},
		{"the text Retweeted by lyfwww", "the text"},
		{"Yes! RT@zhangweiguo: the text RT@uponsnow Retweeted by lyfwww", "Yes! the text"},
		{"@williamlong hello", "hello"},
		{"hello @williamlong and @other!", "hello and !"},
		{"MT @a: cut", "cut"},
		{"rt @a small", "small"},
		{"HT @a found", "found"},
		{"the text via @publico", "the text"},
		{"the text (via @publico)", "the text"},
		{`"@user: quoted text"`, `quoted text"`},
		{"“@user quoted”", "quoted”"},
		{"同意//@张三:原文//@李四：更早", "同意 原文 更早"},
		{"转发自@张三：内容", "内容"},
		{"轉發 @user 內容", "內容"},
		{"转发微博", ""},
		{"你好@williamlong你好", "你好 你好"},
		{"RT the text", "the text"},
		{"@user@mastodon.social hello", "hello"},
		{"@user.bsky.social hello", "hello"},
		{"bye @user.", "bye ."},
		{"bye @user.Then more", "bye .Then more"},
		{"＠user olá", "olá"},
		{"RT @a\nsecond\tline", "second line"},
		// Text that is not a mark stays.
		{"mail a.b@example.org now", "mail a.b@example.org now"},
		{"START the engine", "START the engine"},
		{"START@a", "START@a"},
		{"RT-PCR test, RT.com, R&RT #RT", "RT-PCR test, RT.com, R&RT #RT"},
		{"see https://mastodon.social/@user/1 now", "see https://mastodon.social/@user/1 now"},
		{"see medium.com/@user", "see medium.com/@user"},
		{"http://@a", "http://@a"},
		{"@ alone", "@ alone"},
		{"via Lisboa", "via Lisboa"},
		{"", ""},
		{" \n ", ""},
		{"RT @a: @b Retweeted by c", ""},
	} {
		if got, _ := Strip(c.text); got != c.want {
			t.Errorf("Strip(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

func TestStripHits(t *testing.T) {
	_, hits := Strip("RT @a: x (via @b) //@c: \"@d y @e RT z Retweeted by f")
	for rule, want := range map[Rule]int{RuleOfficial: 1, RuleRepost: 0, RuleVia: 1, RuleSlashes: 1, RuleQuoted: 1,
		RuleBare: 2} {
		if hits[rule] != want {
			t.Errorf("%v: %d hits, want %d (%v)", rule, hits[rule], want, hits)
		}
	}
}

// alphabet is a list of pieces that marks are made of, so that random texts trigger the rules.
var alphabet = []string{"RT", "MT", "rt", "via", "@", "＠", ":", "：", "//", "/", "(", ")", " ", "  ", "\n",
	"转", "轉發", "转发微博", "张三", "a", "user", ".", ".pt", "-", "_", "'", "\"", "“", "”", "#", "&", "Retweeted by ", ", ",
	"and ",
	"http://", "www.", "ç", "\u00a0", "\xff", "não", "1"}

func drawMarks(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(alphabet), 0, 40).Draw(t, "pieces"), "")
}

func TestStripIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkStrip(t, drawMarks(t)) })
}

// TestStripMany tests the 100,000 strings that the method requires.
func TestStripMany(t *testing.T) {
	rng := newRand(1)
	n := 100_000
	if racetest.Small(t) {
		n = 10_000
	}
	for range n {
		var b strings.Builder
		for range rng.IntN(16) {
			b.WriteString(alphabet[rng.IntN(len(alphabet))])
		}
		checkStrip(t, b.String())
	}
}

func checkStrip(t interface{ Fatalf(string, ...any) }, text string) {
	once, _ := Strip(text)
	if twice, _ := Strip(once); twice != once {
		t.Fatalf("Strip(%q) = %q, and again %q", text, once, twice)
	}
	var hits Hits
	passes := 0
	for now := text; passes < 100; passes++ {
		next := stripOnce(now, &hits)
		if next == now {
			break
		}
		if len(next) > len(now) {
			t.Fatalf("a pass over %q made it longer: %q", now, next)
		}
		now = next
	}
	if passes > maxPassesSeen {
		t.Fatalf("Strip(%q) took %d passes", text, passes)
	}
}

// maxPassesSeen limits the number of passes and so the work, because each pass is linear.
const maxPassesSeen = 8

func FuzzStrip(f *testing.F) {
	f.Add("RT @a: RT@b: via (via @c) //@d:e Retweeted by x")
	f.Fuzz(func(t *testing.T, text string) { checkStrip(t, text) })
}

func TestStripLinear(t *testing.T) {
	// Tens of thousands of nested marks: quadratic work would take minutes.
	n := 20_000
	if racetest.Enabled {
		n = 2000
	}
	text := strings.Repeat("RT ", n) + strings.Repeat("@a: ", n) + "text"
	if got, _ := Strip(text); got != "text" {
		t.Errorf("got %.40q", got)
	}
	text = strings.Repeat("(via ", n) + "@a" + strings.Repeat(" Retweeted by x", n)
	Strip(text)
}
