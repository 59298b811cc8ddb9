package duplicates

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// RulesVersion is the version of the table of marks. Texts stripped under different versions are
// not compared: FingerprintVersion covers it.
const RulesVersion = 1

// Rule is one kind of repost mark. It is used to count which marks occur.
type Rule uint8

// The rules, in the order in which one pass applies them at one place. The paper's own table is
// lost. These are the marks that its text names, and others of its time.
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

// Hits counts how often each Rule removed something from a text.
type Hits [ruleCount]int

// keyword is a word that is a mark when a mention follows it.
type keyword struct {
	word string // lower case
	rule Rule
}

// keywords are tried in this order at the end of the text before a mention. A keyword that ends
// with another one comes before it.
var keywords = [...]keyword{
	{"rt", RuleRepost}, {"mt", RuleRepost}, {"ht", RuleRepost}, {"via", RuleVia},
	{"//", RuleSlashes}, {"转发自", RuleChinese}, {"轉發自", RuleChinese},
	{"转发", RuleChinese}, {"轉發", RuleChinese}, {"转自", RuleChinese},
	{"轉自", RuleChinese}, {"转", RuleChinese}, {"轉", RuleChinese},
}

// wholeChinese are the texts that a service writes for a repost without a comment.
var wholeChinese = [...]string{"转发微博", "轉發微博"}

// officialMark is the text that the service itself writes after a retweet.
const officialMark = "Retweeted by "

// Official removes the official marks at the end of text. It returns the content before them and
// the names of those who reposted it, in the order of the text. The phrase inside a text stays.
func Official(text string) (content string, names []string) {
	content = strings.TrimSpace(text)
	for strings.Contains(content, officialMark) { // quicker than a search from the end
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

// officialNames returns the names in rest if it holds nothing else: "a", "a, b", "a and b", "@a
// @b". Otherwise it returns nil.
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

// Strip removes every repost mark from text, official ones included, until none is left. It also
// replaces white space by single spaces. It is idempotent: Strip(Strip(x)) == Strip(x). A text that
// is only marks becomes "".
func Strip(text string) (string, Hits) {
	var hits Hits
	// A pass returns a shorter text or the same one, so the loop ends. More than three passes were
	// never seen (tests allow eight, maxPassesSeen), because a pass over a mention also removes all
	// the marks before it.
	for {
		before := hits
		next := stripOnce(text, &hits)
		// A pass that removed no mark changed only white space. The next pass would do the same,
		// unless white space was joined inside officialMark, the only mark with a space.
		if next == text || hits == before && !strings.Contains(next, officialMark) {
			return next, hits
		}
		text = next
	}
}

// stripOnce is one pass of Strip.
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

// stripper is the state of one pass over one text. out is the result so far. A mark becomes a
// space, so that the words around it stay apart.
type stripper struct {
	in   string
	at   int
	from int // in[from:at] is unchanged text that is not in out yet
	out  []byte
	hits *Hits
}

// run returns the text without the marks of this pass.
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

// take appends the unchanged text to out.
func (s *stripper) take() {
	if s.out == nil {
		s.out = make([]byte, 0, len(s.in))
	}
	s.out = append(s.out, s.in[s.from:s.at]...)
	s.from = s.at
}

// blank ends out with exactly one space, or none at the beginning. The text read up to here is left
// out.
func (s *stripper) blank() {
	s.from = s.at
	if n := len(s.out); n > 0 && s.out[n-1] != ' ' {
		s.out = append(s.out, ' ')
	}
}

// word copies a whole word or URL. It drops a bare RT or MT.
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

// mention removes the mention at s.at, with the marks before it, or returns false. size is the
// length of the at sign.
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

// popMarks removes the keywords before a mention from the end of out.
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

// keywordAt returns the keyword at the end of out and its length. It ignores spaces after the
// keyword.
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

// mentionBefore reports whether an at sign after out begins a mention. In an address (a@b) and in a
// path (/@b) it does not.
func mentionBefore(out []byte) bool {
	r, _ := utf8.DecodeLastRune(out)
	if r == '/' {
		return len(out) > 1 && out[len(out)-2] == '/'
	}
	return len(out) == 0 || !(isWordRune(r) && !isIdeograph(r)) && !strings.ContainsRune(".-+@＠", r)
}

// bareBefore reports whether a keyword after out is a separate word on its left side.
func bareBefore(out []byte) bool {
	r, _ := utf8.DecodeLastRune(out)
	return len(out) == 0 || !(isWordRune(r) && !isIdeograph(r)) && !strings.ContainsRune("#$-&'’.", r)
}

// bareAfter reports whether a keyword before rest is a separate word on its right side. RT-PCR and
// RT.com are other words.
func bareAfter(rest string) bool {
	r, size := utf8.DecodeRuneInString(rest)
	if r == '.' {
		next, _ := utf8.DecodeRuneInString(rest[size:])
		return !isWordRune(next)
	}
	return rest == "" || !strings.ContainsRune("-&'’/", r)
}

// boundaryBefore reports whether a mark after s would begin at a word boundary.
func boundaryBefore(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return s == "" || !isWordRune(r) || isIdeograph(r)
}

// handleLen returns the length of the name after an at sign: letters, digits and _. After an ASCII
// name, @host.tld or .host.tld may follow.
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

// maxHandle is the length of the longest name taken as a mention, in bytes.
const maxHandle = 90

// hostLen returns the length of a host name at the beginning of s, or 0. The host name has a dot,
// and its last label has at least two characters, all small letters.
func hostLen(s string) int {
	label, good := 0, 0 // start of the label, end of the last valid one
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

// maxHost is the length of the longest possible host name, in bytes.
const maxHost = 253

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

func trimBlank(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	return b
}
