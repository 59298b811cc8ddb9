package safetext

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// hostile reports whether s can fool a terminal or a reader. It uses Unicode's own tables, not
// ours.
func hostile(s string, allowed string) bool {
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case strings.ContainsRune(allowed, r):
		case r == utf8.RuneError && size == 1, unicode.Is(unicode.Cc, r), unicode.Is(unicode.Bidi_Control, r),
			unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r), r == '\ufeff', r >= 0xe0000 && r < 0xe1000:
			return true
		}
	}
	return false
}

func TestTextAndLine(t *testing.T) {
	for _, c := range [][3]string{
		{"", "", ""},
		{"Olá,  mundo", "Olá,  mundo", "Olá, mundo"},
		{"later \x1b]0;PWNED\x07\x1b[31mred", "later \ufffd]0;PWNED\ufffd\ufffd[31mred",
			"later \ufffd]0;PWNED\ufffd\ufffd[31mred"},
		{"a\nb\tc\r\nd", "a\nb\tc \nd", "a b c d"},
		{"a\u2028b\u2029c\u0085d", "a\nb\nc\nd", "a b c d"},
		{"\x9b2J\u009b2J\x7f", "\ufffd2J\ufffd2J\ufffd", "\ufffd2J\ufffd2J\ufffd"},
		{"evil\u202egnp.exe\u2066\u2069\u200e\u061c", "evilgnp.exe", "evilgnp.exe"},
		{"a\ufeffb\U000e0041c\u2060d\u200be", "abcde", "abcde"},
		{"👩\u200d👩\u200d👧 می\u200cخواهم", "👩\u200d👩\u200d👧 می\u200cخواهم", "👩\u200d👩\u200d👧 می\u200cخواهم"},
		{"1\u202f000 \u00a0x", "1\u202f000 \u00a0x", "1 000 x"},
		{"\ufffd", "\ufffd", "\ufffd"},
	} {
		if got := Text(c[0]); got != c[1] {
			t.Errorf("Text(%+q) = %+q, want %+q", c[0], got, c[1])
		}
		if got := Line(c[0]); got != c[2] {
			t.Errorf("Line(%+q) = %+q, want %+q", c[0], got, c[2])
		}
	}
}

// TestEveryCharacter compares our classes with Unicode's tables.
func TestEveryCharacter(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		s := "a" + string(r) + "b"
		if got := Text(s); hostile(got, "\n\t") {
			t.Errorf("%U: Text leaves it", r)
		} else if got != s && unicode.IsGraphic(r) && !unicode.Is(unicode.Variation_Selector, r) {
			t.Errorf("%U can be seen, and Text takes it out", r)
		}
		if got := Line(s); hostile(got, "") {
			t.Errorf("%U: Line leaves it", r)
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := JSON(b); hostile(string(got), "") {
			t.Errorf("%U: JSON leaves it", r)
		}
	}
}

func TestCell(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "plain": "plain", "a=b": "a=b", " ": " ", "5": "5", "-5": "-5", "+5.25": "+5.25", "-": "'-",
		"-5-5": "'-5-5", "+": "'+", "--5": "'--5", "-5.": "'-5.", "-.5": "'-.5",
		"=1+1": "'=1+1", "+cmd|' /C calc'!A0": "'+cmd|' /C calc'!A0", "-2+3": "'-2+3", "@SUM(A1)": "'@SUM(A1)",
		"\t=1+1": "'\t=1+1", "\tx": "'\tx", "\r=1+1": "' =1+1", "  =1+1": "'  =1+1", "\u00a0=1": "'\u00a0=1",
		"\n@x": "'\n@x", "\u200e=1+1": "'=1+1", "\ufeff=1": "'=1",
		"＝1+1": "'＝1+1", "＠x": "'＠x", "\x1b[31m": "\ufffd[31m", "\x00=1": "\ufffd=1",
	} {
		if got := Cell(text); got != want {
			t.Errorf("Cell(%+q) = %+q, want %+q", text, got, want)
		}
	}
}

func anyText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOf(rapid.OneOf(rapid.String(),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.SampledFrom([]string{"\x1b[2J", "\u009b", "\x9b", "\u202e", "\u2028", "=", "-1", "\t", "\r", "\n",
				"\ufeff", "\u200d", "\xe2\x80", "\xf3\xa0"}))).Draw(t, "parts"), "")
	})
}

func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { check(t, anyText().Draw(t, "text"), rapid.IntRange(1, 9).Draw(t, "piece")) })
}

func FuzzSafeText(f *testing.F) {
	for _, s := range []string{"", "later \x1b]0;PWNED\x07", "\xe2\x80\xaee", "=1+1", "\x9b", "{\"a\":\"\u202e\"}"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, piece int) { check(t, s, max(1, min(piece, 1<<10))) })
}

type fails interface {
	Fatalf(format string, args ...any)
}

// check checks every guarantee for any text.
func check(t fails, s string, piece int) {
	text, line, cell := Text(s), Line(s), Cell(s)
	switch {
	case hostile(text, "\n\t") || hostile(cell, "\n\t"):
		t.Fatalf("%+q: shown as %+q, in a cell %+q", s, text, cell)
	case hostile(line, ""):
		t.Fatalf("%+q: in a line %+q", s, line)
	case Text(text) != text || Line(line) != line || Text(cell) != cell:
		t.Fatalf("%+q: cleaned twice is not cleaned once", s)
	case strings.TrimPrefix(cell, "'") != text && cell != text:
		t.Fatalf("%+q: the cell %+q is another text", s, cell)
	case computes(cell):
		t.Fatalf("%+q: a spreadsheet computes %+q", s, cell)
	case !hostile(s, "\n\t") && strings.ToValidUTF8(s, "") == s && len(text) > len(s):
		t.Fatalf("%+q: harmless, and shown as %+q", s, text)
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var back, want string
	if err := json.Unmarshal(JSON(b), &back); err != nil {
		t.Fatalf("%+q: %v", s, err)
	}
	if err := json.Unmarshal(b, &want); err != nil || back != want {
		t.Fatalf("%+q: through JSON %+q, want %+q (%v)", s, back, want, err)
	}
	if hostile(string(JSON(b)), "") || hostile(string(JSON([]byte(s))), "\n\t\r") {
		t.Fatalf("%+q: JSON leaves it", s)
	}
	// Pieces that split characters give the same result.
	if got := inPieces(t, NewWriter, s, piece); got != text {
		t.Fatalf("%+q in pieces of %d: %+q, want %+q", s, piece, got, text)
	}
	if got := inPieces(t, NewJSONWriter, string(b), piece); got != string(JSON(b)) {
		t.Fatalf("%s in pieces of %d: %s", b, piece, got)
	}
}

// computes reports whether a spreadsheet computes cell, as its makers describe it.
func computes(cell string) bool {
	cell = strings.TrimLeftFunc(cell, unicode.IsSpace)
	return cell != "" && strings.ContainsAny(cell[:1], "=+-@") && strings.Trim(cell[1:], "0123456789.") != "" ||
		strings.HasPrefix(cell, "＝") || cell == "=" || cell == "@"
}

func inPieces(t fails, kind func(io.Writer) *Writer, s string, piece int) string {
	var out bytes.Buffer
	w := kind(&out)
	for b := []byte(s); len(b) > 0; {
		n := min(piece, len(b))
		if k, err := w.Write(b[:n]); k != n || err != nil {
			t.Fatalf("write: %d of %d, %v", k, n, err)
		}
		b = b[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	return out.String()
}

func TestOneLineIsOneWrite(t *testing.T) {
	var n int
	w := NewJSONWriter(writerFunc(func(b []byte) (int, error) { n++; return len(b), nil }))
	if _, err := io.WriteString(w, "{\"a\":\"\u202e\u009b\"}\n"); err != nil || n != 1 {
		t.Errorf("%d writes, %v", n, err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func BenchmarkJSON(b *testing.B) {
	text, err := json.Marshal(strings.Repeat("O comboio de Lisboa não chegou — às três, “disse”. ", 2000))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		JSON(text)
	}
}
