package duplicates

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// RulesVersion names the table of marks. Texts stripped under different versions
// are not compared: a Print carries it (PrintVersion).
const RulesVersion = 1

// Rule names one kind of repost mark, for counting which are met.
type Rule uint8

// The rules in the order in which one pass applies them at one place. The paper's
// own table is lost; these are the marks its text names and those of its time.
const (
	RuleOfficial Rule = iota // trailing "Retweeted by NAME", possibly several
	RuleRepost               // RT @u: or RT@u or MT @u or rt @u
	RuleVia                  // via @u or (via @u)
	RuleSlashes              // //@u:
	RuleChinese              // 转 @u, 轉發 @u, 转自 @u, 转发微博
	RuleQuoted               // "@u
	RuleMention              // @u, @u@host, @u.host
	RuleBare                 // RT or MT alone
	ruleCount
)

// Hits counts how often each Rule removed something from one text.
type Hits [ruleCount]int

// keyword is a word that is a mark when a mention follows it.
type keyword struct {
	word string // lower case
	rule Rule
}

// keywords are tried in this order at the end of what precedes a mention.
// Longer ones come before their own endings.
var keywords = [...]keyword{
	{"rt", RuleRepost}, {"mt", RuleRepost}, {"ht", RuleRepost}, {"via", RuleVia},
	{"//", RuleSlashes}, {"转发自", RuleChinese}, {"轉發自", RuleChinese},
	{"转发", RuleChinese}, {"轉發", RuleChinese}, {"转自", RuleChinese},
	{"轉自", RuleChinese}, {"转", RuleChinese}, {"轉", RuleChinese},
}

// wholeChinese are texts a service writes for a repost without a comment.
var wholeChinese = [...]string{"转发微博", "轉發微博"}

// officialMark is what the service itself wrote behind a passed-on tweet.
const officialMark = "Retweeted by "

// Official takes the trailing official marks off text: the content before them,
// and who passed it on, in the order written. The phrase inside a text stays.
func Official(text string) (content string, names []string) {
	content = strings.TrimSpace(text)
	for strings.Contains(content, officialMark) { // quicker than to look from the end
		at := strings.LastIndex(content, officialMark)
		if at < 0 || !boundaryBefore(content[:at]) {
			break
		}
		who := officialNames(content[at+len(officialMark):])
		if who == nil {
			break
		}
		slices.Reverse(who)
		names = append(names, who...)
		content = strings.TrimSpace(content[:at])
	}
	slices.Reverse(names)
	return content, names
}

// officialNames is the names in rest if it holds nothing else: "a", "a, b",
// "a and b", "@a @b"; else nil.
func officialNames(rest string) []string {
	var names []string
	joined := true // a name may follow
	for _, word := range strings.Fields(rest) {
		switch {
		case word == "and" || word == "&":
			joined = true
			continue
		case !joined && !strings.HasPrefix(word, "@"):
			return nil
		}
		joined = strings.HasSuffix(word, ",")
		word = strings.TrimSuffix(word, ",")
		if !isHandle(strings.TrimPrefix(word, "@")) {
			return nil
		}
		names = append(names, strings.TrimPrefix(word, "@"))
	}
	return names
}

func isHandle(s string) bool {
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_.-@", r) {
			return false
		}
	}
	return s != ""
}

// Strip takes every repost mark off text, official ones included, until none is
// left, and makes white space single blanks. It is idempotent:
// Strip(Strip(x)) == Strip(x). What is left of a text of marks is "".
func Strip(text string) (string, Hits) {
	var hits Hits
	// A pass leaves a shorter text or the same one, so this ends. More than
	// three passes were never seen (FuzzStrip asserts it): a pass over a
	// mention takes all the marks before it along.
	for {
		before := hits
		next := stripOnce(text, &hits)
		// A pass that took no mark changed white space alone, and so would
		// the next one, unless that joined the one mark that has blanks.
		if next == text || hits == before && !strings.Contains(next, officialMark) {
			return next, hits
		}
		text = next
	}
}

func stripOnce(text string, hits *Hits) string {
	content, names := Official(text)
	hits[RuleOfficial] += len(names)
	for _, whole := range wholeChinese {
		if content == whole {
			hits[RuleChinese]++
			return ""
		}
	}
	s := stripper{in: content, hits: hits}
	return s.run()
}

// stripper is one pass over one text: what it has taken is in out, marks
// replaced by a blank so that nothing grows together.
type stripper struct {
	in   string
	at   int
	from int // in[from:at] stands as it is, and is not in out yet
	out  []byte
	hits *Hits
}

func (s *stripper) run() string {
	for s.at < len(s.in) {
		if wordBytes[s.in[s.at]] {
			s.word()
			continue
		}
		r, size := utf8.DecodeRuneInString(s.in[s.at:])
		switch {
		case r == ' ' && s.at > s.from && s.in[s.at-1] != ' ':
			s.at++
		case unicode.IsSpace(r):
			s.take()
			s.at += size
			s.blank()
		case (r == '@' || r == '＠') && s.mention(size):
		case r >= utf8.RuneSelf && isWordRune(r) && !isIdeograph(r):
			s.word()
		default:
			s.at += size
		}
	}
	if s.from == 0 && s.out == nil {
		return strings.TrimRight(s.in, " ")
	}
	s.take()
	return string(trimBlank(s.out))
}

// take writes what stands as it is.
func (s *stripper) take() {
	if s.out == nil {
		s.out = make([]byte, 0, len(s.in))
	}
	s.out = append(s.out, s.in[s.from:s.at]...)
	s.from = s.at
}

// blank ends what was written by exactly one blank, none at the beginning; what
// was read up to here is left out.
func (s *stripper) blank() {
	s.from = s.at
	if n := len(s.out); n > 0 && s.out[n-1] != ' ' {
		s.out = append(s.out, ' ')
	}
}

// word copies a whole word or URL, or drops it when it is a bare RT or MT.
func (s *stripper) word() {
	rest := s.in[s.at:]
	if n := urlLen(rest); n > 0 {
		s.at += n
		return
	}
	n := wordLen(rest)
	if word := rest[:n]; word == "RT" || word == "MT" {
		if s.take(); bareBefore(s.out) && bareAfter(rest[n:]) {
			s.hits[RuleBare]++
			s.at += n
			s.blank()
			return
		}
	}
	s.at += n
}

// mention takes the mention at s.at, with the marks before it, or answers false.
// size is the length of the at sign.
func (s *stripper) mention(size int) bool {
	s.take()
	n := handleLen(s.in[s.at+size:])
	if n == 0 || !mentionBefore(s.out) {
		return false
	}
	s.at += size + n
	rule, bracket := s.popMarks()
	s.hits[rule]++
	rest := strings.TrimLeft(s.in[s.at:], " \t")
	for _, tail := range [...]string{":", "："} {
		if strings.HasPrefix(rest, tail) {
			s.at = len(s.in) - len(rest) + len(tail)
		}
	}
	if bracket && strings.HasPrefix(s.in[s.at:], ")") {
		s.at++
	}
	s.blank()
	return true
}

// popMarks takes the keywords that precede a mention off what was written.
func (s *stripper) popMarks() (rule Rule, bracket bool) {
	rule = RuleMention
	for _, quote := range [...]string{`"`, "“", "«", "„"} {
		if strings.HasSuffix(string(tail(s.out, 4)), quote) {
			s.out = s.out[:len(s.out)-len(quote)]
			rule = RuleQuoted
		}
	}
	for {
		k, n := keywordAt(s.out)
		if n == 0 {
			break
		}
		s.out = trimBlank(s.out)
		s.out = s.out[:len(s.out)-n]
		if rule == RuleMention || rule == RuleQuoted {
			rule = k
		}
		if t := trimBlank(s.out); k == RuleVia && len(t) > 0 && t[len(t)-1] == '(' {
			s.out, bracket = t[:len(t)-1], true
		}
	}
	return rule, bracket
}

// keywordAt is the keyword at the end of out, blanks not counted, and its length.
func keywordAt(out []byte) (Rule, int) {
	out = trimBlank(out)
	for _, k := range keywords {
		n := len(k.word)
		if len(out) < n || !strings.EqualFold(string(out[len(out)-n:]), k.word) {
			continue
		}
		if k.word[0] >= 'a' && k.word[0] <= 'z' && !bareBefore(out[:len(out)-n]) {
			continue
		}
		if k.rule == RuleSlashes && len(out) > n && out[len(out)-n-1] == ':' {
			continue // the // of a URL
		}
		return k.rule, n
	}
	return 0, 0
}

// mentionBefore says whether an at sign behind out begins a mention: not in an
// address (a@b), not in a path (/@b).
func mentionBefore(out []byte) bool {
	r, _ := utf8.DecodeLastRune(out)
	if r == '/' {
		return len(out) > 1 && out[len(out)-2] == '/'
	}
	return len(out) == 0 || !(isWordRune(r) && !isIdeograph(r)) && !strings.ContainsRune(".-+@＠", r)
}

// bareBefore says whether a keyword behind out stands alone to its left.
func bareBefore(out []byte) bool {
	r, _ := utf8.DecodeLastRune(out)
	return len(out) == 0 || !(isWordRune(r) && !isIdeograph(r)) && !strings.ContainsRune("#$-&'’.", r)
}

// bareAfter says whether a keyword before rest stands alone to its right:
// RT-PCR and RT.com are words.
func bareAfter(rest string) bool {
	r, size := utf8.DecodeRuneInString(rest)
	if r == '.' {
		next, _ := utf8.DecodeRuneInString(rest[size:])
		return !isWordRune(next)
	}
	return rest == "" || !strings.ContainsRune("-&'’/", r)
}

func boundaryBefore(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return s == "" || !isWordRune(r) || isIdeograph(r)
}

// handleLen is the length of the name behind an at sign: letters, digits and _;
// an ASCII name may go on with @host.tld or .host.tld.
func handleLen(s string) int {
	n := 0
	ascii := s != "" && s[0] < utf8.RuneSelf
	for i, r := range s {
		if i >= maxHandle || !isWordRune(r) || ascii && r >= utf8.RuneSelf {
			break
		}
		n = i + utf8.RuneLen(r)
	}
	if n == 0 || !ascii || n == len(s) {
		return n
	}
	if s[n] == '@' {
		if h := hostLen(s[n+1:]); h > 0 {
			return n + 1 + h
		}
	}
	if s[n] == '.' || s[n] == '-' {
		if h := hostLen(s); h > n {
			return h
		}
	}
	return n
}

// maxHandle is the longest name taken as a mention, in bytes.
const maxHandle = 90

// hostLen is the length of a host name with a dot and a last label of two small
// letters or more at the beginning of s, or 0.
func hostLen(s string) int {
	label, good := 0, 0 // begin of the label, end of the last good one
	small := true       // the label has small letters only
	for n := 0; n <= min(len(s), maxHost); n++ {
		c := byte(0)
		if n < len(s) {
			c = s[n]
		}
		switch {
		case c >= 'a' && c <= 'z':
		case c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z':
			small = false
		default:
			if label > 0 && small && n-label >= 2 {
				good = n
			}
			if c != '.' || n == label {
				return good
			}
			label, small = n+1, true
		}
	}
	return good
}

// maxHost is the longest host name there is.
const maxHost = 253

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

func trimBlank(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	return b
}
