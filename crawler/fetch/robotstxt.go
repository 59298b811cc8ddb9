package fetch

import (
	"bytes"
	"strings"
	"unicode"
)

// Limits for reading one robots.txt, besides the size of the file (maxRobotsBody).
const (
	maxRobotsLine    = 2083*8 - 1 // bytes of a line that are read, as in Google's parser
	maxRobotsRules   = 30_000     // rules in groups for this program
	maxRobotsPattern = 4 << 10    // bytes of one rule; no URL of a Key is half as long
	maxRobotsSteps   = 16 << 20   // bytes compared to check one URL against all rules
)

// field is the kind of a line in a robots.txt.
type field uint8

const (
	fieldOther field = iota
	fieldAgent
	fieldAllow
	fieldDisallow
	fieldSitemap
)

// eachLine calls visit for the fields of a robots.txt in order, until visit returns false. It
// accepts what Google's parser accepts: any line ending, comments, a missing colon, the usual
// misspellings.
func eachLine(body []byte, visit func(f field, name, value []byte) bool) {
	for _, b := range []byte("\xef\xbb\xbf") { // a byte order mark, or a part of one
		if len(body) == 0 || body[0] != b {
			break
		}
		body = body[1:]
	}
	for len(body) > 0 {
		line := body
		if i := bytes.IndexAny(body, "\r\n"); i >= 0 {
			line, body = body[:i], body[i+1:]
		} else {
			body = nil
		}
		name, value := splitLine(line[:min(len(line), maxRobotsLine)])
		if len(name) > 0 && !visit(fieldOf(name), name, value) {
			return
		}
	}
}

// splitLine returns the name and the value of a line. The name is empty if the line has none.
func splitLine(line []byte) (name, value []byte) {
	if i := bytes.IndexByte(line, '#'); i >= 0 {
		line = line[:i]
	}
	line = bytes.TrimSpace(line)
	i := bytes.IndexByte(line, ':')
	if i < 0 { // some files miss the colon: exactly two words are accepted
		if i = bytes.IndexAny(line, " \t"); i < 0 || bytes.ContainsAny(bytes.TrimSpace(line[i:]), " \t") {
			return nil, nil
		}
	}
	return bytes.TrimSpace(line[:i]), bytes.TrimSpace(line[i+1:])
}

// fieldOf returns the kind of a line from its name. Only the beginning of the name counts.
func fieldOf(name []byte) field {
	begins := func(words ...string) bool {
		for _, w := range words {
			if len(name) >= len(w) && strings.EqualFold(string(name[:len(w)]), w) {
				return true
			}
		}
		return false
	}
	switch {
	case begins("user-agent", "useragent", "user agent"):
		return fieldAgent
	case begins("allow"):
		return fieldAllow
	case begins("disallow", "dissallow", "dissalow", "disalow", "diaslow", "diasllow", "disallaw"):
		return fieldDisallow
	case begins("sitemap", "site-map"):
		return fieldSitemap
	}
	return fieldOther
}

// verdict checks one path against the rules of one robots.txt. The rules come from the groups that
// name the agent if there is one, otherwise from those for all. The longest matching rule wins. If
// two have the same length, the one that allows wins.
type verdict struct {
	agent, path string

	mine, all     group
	named         bool // a group named the agent
	inMine, inAll bool // the current group is for the agent, or for all
	inRules       bool // a rule followed the last user-agent line
	rules, steps  int
	over          *LimitError
}

// group holds the length of the longest matching rule of each kind so far, zero = none.
type group struct{ allow, disallow int }

// line reads one field. It returns false if a limit was hit, which ends the reading.
func (v *verdict) line(f field, _, value []byte) bool {
	switch f {
	case fieldAgent:
		v.user(value)
	case fieldAllow, fieldDisallow:
		if v.inMine || v.inAll {
			v.inRules = true
			v.rule(f == fieldAllow, value)
		}
	}
	return v.over == nil
}

// user reads a user-agent line. After a rule, it begins a new group.
func (v *verdict) user(value []byte) {
	if v.inRules {
		v.inMine, v.inAll, v.inRules = false, false, false
	}
	if len(value) > 0 && value[0] == '*' && (len(value) == 1 || unicode.IsSpace(rune(value[1]))) {
		v.inAll = true
	} else if strings.EqualFold(string(product(value)), v.agent) {
		v.inMine, v.named = true, true
	}
}

// product returns the product token at the start of value.
func product(value []byte) []byte {
	for i, c := range value {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("~#$%'*+-.^_`|", rune(c)) {
			return value[:i]
		}
	}
	return value
}

// rule applies one allow or disallow rule of the current group.
func (v *verdict) rule(allow bool, value []byte) {
	if v.rules++; v.rules > maxRobotsRules {
		v.over = &LimitError{LimitRules, maxRobotsRules}
		return
	}
	if len(value) > maxRobotsPattern {
		v.over = &LimitError{LimitPattern, maxRobotsPattern}
		return
	}
	best := &v.all
	if v.inMine {
		best = &v.mine
	}
	pattern := escaped(value)
	matches := v.matches(pattern)
	switch {
	case matches && allow:
		best.allow = max(best.allow, len(pattern))
	case matches:
		best.disallow = max(best.disallow, len(pattern))
	case allow: // a rule for a folder's index.html also allows the folder
		if i := strings.LastIndexByte(pattern, '/'); i >= 0 && strings.HasPrefix(pattern[i:], "/index.htm") &&
			v.matches(pattern[:i+1]+"$") {
			best.allow = max(best.allow, i+2)
		}
	}
}

// matches reports whether pattern matches the beginning of the path. In a pattern, * matches
// anything, and a $ at the end matches the end of the path. The parts between stars are searched
// one after the other, each at its first place. So the path is walked once, even with many stars.
func (v *verdict) matches(pattern string) bool {
	pattern, ends := strings.CutSuffix(pattern, "$")
	part, rest, star := strings.Cut(pattern, "*")
	if v.step(len(part)); !strings.HasPrefix(v.path, part) {
		return false
	}
	path := v.path[len(part):]
	for star && v.over == nil {
		part, rest, star = strings.Cut(rest, "*")
		if !star && ends { // the last part must be at the end
			v.step(len(part))
			return strings.HasSuffix(path, part)
		}
		i := strings.Index(path, part)
		if i < 0 {
			v.step(len(path))
			return false
		}
		v.step(i + len(part))
		path = path[i+len(part):]
	}
	return v.over == nil && (!ends || path == "")
}

// step adds the comparison of n bytes to the work done.
func (v *verdict) step(n int) {
	if v.steps += n + 1; v.steps > maxRobotsSteps {
		v.over = &LimitError{LimitSteps, maxRobotsSteps}
	}
}

// disallowed returns the verdict after all lines were read.
func (v *verdict) disallowed() bool {
	best := v.all
	if v.named {
		best = v.mine
	}
	return best.disallow > best.allow
}

// escaped returns a rule in the form of a URL path: %aa becomes %AA, and bytes that are not ASCII
// become escapes.
func escaped(rule []byte) string {
	const hex = "0123456789ABCDEF"
	var out []byte
	for i := 0; i < len(rule); i++ {
		c := rule[i]
		switch {
		case c >= 0x80:
			if out == nil {
				out = append(make([]byte, 0, len(rule)+16), rule[:i]...)
			}
			out = append(out, '%', hex[c>>4], hex[c&15])
		case c == '%' && i+2 < len(rule) && isHex(rule[i+1]) && isHex(rule[i+2]):
			if out == nil {
				out = append(make([]byte, 0, len(rule)+16), rule[:i]...)
			}
			out = append(out, '%', upper(rule[i+1]), upper(rule[i+2]))
			i += 2
		case out != nil:
			out = append(out, c)
		}
	}
	if out == nil {
		return string(rule)
	}
	return string(out)
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

func upper(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 'A'
	}
	return c
}

// pathOf returns the part of a URL that rules match: path, parameters and query.
func pathOf(u string) string {
	start := 0
	if strings.HasPrefix(u, "//") {
		start = 2
	}
	if i := strings.Index(u[start:], "://"); i >= 0 && !strings.ContainsAny(u[start:start+i], "/?;") {
		start += i + len("://")
	}
	i := strings.IndexAny(u[start:], "/?;")
	if i < 0 {
		return "/"
	}
	if strings.Contains(u[:start+i], "#") {
		return "/"
	}
	path, _, _ := strings.Cut(u[start+i:], "#")
	if path[0] != '/' {
		path = "/" + path
	}
	return path
}
