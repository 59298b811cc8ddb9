package duplicates

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/go-faster/city"
)

// FingerprintVersion is the version of everything that a Fingerprint depends on: rules, tokens, hashes. Fingerprints
// of different versions are never compared.
const FingerprintVersion = 1

// Limits for the cost of one text.
const (
	MaxText  = 64 << 10 // bytes of a text that are read; the rest is ignored
	MaxUnits = 4096     // units kept of one text
	MaxID    = 1024     // bytes of an id in an encoded Fingerprint
)

// Text is one message.
type Text struct {
	ID   string // unique; a text added twice under one id is a copy of itself
	Text string
	// Time orders texts: the earliest text of a group represents it. It may have any unit; 0 means
	// unknown (then the ids decide).
	Time int64
	// Repost is set when the service itself marks the text as a repost. An equal text is then
	// "official".
	Repost bool
}

// Fingerprint is the data of a text that is needed to find and verify its copies.
type Fingerprint struct {
	ID       string
	Time     int64
	Official bool   // the text had an official mark, or Text.Repost was set
	Content  uint64 // CityHash64 of the text without official marks
	Bits     uint64 // Simhash of its features
	Features int    // number of distinct features, or one more (see scan)
	Units    []Unit // its words in order; the first MaxUnits of a long text
}

// Unit is one word or one ideograph: 28 bits of its hash and 4 bits for its classes.
type Unit uint32

// The classes of a Unit, one bit each.
const (
	unitNumber   Unit = 1 << iota // digits
	unitHan                       // one ideograph, which counts as half a word
	unitNegation                  // não, not, 不 ...
	unitName                      // a capital inside a sentence; does not count for equality
	unitClasses  = 4
)

// word returns u without the class that does not count for equality.
func (u Unit) word() Unit { return u &^ unitName }

func (u Unit) is(class Unit) bool { return u&class != 0 }

// weight returns the weight of a unit in half words.
func (u Unit) weight() int {
	if u.is(unitHan) {
		return 1
	}
	return 2
}

// NewFingerprint computes the Fingerprint of t. It never fails: a text that is only marks gives a Fingerprint without
// features, which matches nothing.
func NewFingerprint(t Text) Fingerprint {
	var p printer
	return p.scan(t)
}

// printer holds the buffers of one goroutine.
type printer struct {
	hashes []uint64
	units  []Unit
	buf    []byte
	free   []Unit // the free rest of the chunk that keep copies to
}

// print returns the Fingerprint of t with its own copy of Units.
func (p *printer) print(t Text) Fingerprint {
	out := p.scan(t)
	out.Units = p.keep(out.Units)
	return out
}

// scan returns the Fingerprint of t. The next scan overwrites its Units.
func (p *printer) scan(t Text) Fingerprint {
	text := t.Text[:min(len(t.Text), MaxText)]
	content, names := Official(text)
	stripped, _ := Strip(content)
	p.buf = append(p.buf[:0], content...)
	out := Fingerprint{ID: t.ID, Time: t.Time, Official: t.Repost || len(names) > 0, Content: city.Hash64(p.buf)}
	const meanWord = 5 // bytes of most words with the space after them, or more
	p.hashes = slices.Grow(p.hashes[:0], len(stripped)/meanWord)
	p.units = slices.Grow(p.units[:0], min(len(stripped)/meanWord, MaxUnits))
	english := false
	c := newCutter(stripped)
	c.buf = p.buf
	for tok, ok := c.next(); ok; tok, ok = c.next() {
		if tok.han {
			p.ideographs(tok)
			continue
		}
		h := city.Hash64(tok.text)
		p.hashes = append(p.hashes, h)
		p.add(h, tok)
		english = english || englishWord(string(tok.text))
	}
	set := distinct(p.hashes)
	out.Bits, out.Features = majority(set), len(set)
	if len(set) < len(p.hashes) {
		out.Features++ // repeated words count as one more; a mistake, but fixed by this version
	}
	p.classes(english)
	out.Units = p.units
	return out
}

// ideographs adds a run of ideographs: a feature for each pair, a Unit for each ideograph.
func (p *printer) ideographs(run token) {
	pairs(run.text, func(pair []byte) { p.hashes = append(p.hashes, city.Hash64(pair)) })
	for rest := run.text; len(rest) > 0; {
		_, size := utf8.DecodeRune(rest)
		one := run
		one.text, rest = rest[:size], rest[size:]
		p.add(city.Hash64(one.text), one)
	}
}

// add adds the word t, whose hash is h.
func (p *printer) add(h uint64, t token) {
	if len(p.units) >= MaxUnits {
		return
	}
	u := Unit(h) << unitClasses
	if t.number {
		u |= unitNumber
	}
	if t.han {
		u |= unitHan
	}
	if t.name {
		u |= unitName
	}
	if negates(string(t.text)) || string(t.text) == englishNo {
		u |= unitNegation
	}
	p.units = append(p.units, u)
}

// classes corrects the classes that depend on the whole text. "no" is a negation in English, but
// not in Portuguese ("in the"). If most words have capitals, capitals mean nothing.
func (p *printer) classes(english bool) {
	no := Unit(Hash(englishNo)) << unitClasses
	names := 0
	for i, u := range p.units {
		if !english && u&^(1<<unitClasses-1) == no {
			p.units[i] = u &^ unitNegation
		}
		if u.is(unitName) {
			names++
		}
	}
	if 2*names <= len(p.units) {
		return
	}
	for i := range p.units {
		p.units[i] &^= unitName
	}
}

// unitChunk is the number of units that are allocated at a time.
const unitChunk = 16 << 10

// keep copies units into a shared chunk, so that millions of texts need few allocations.
func (p *printer) keep(units []Unit) []Unit {
	if len(units) > len(p.free) {
		p.free = make([]Unit, max(unitChunk, len(units)))
	}
	n := copy(p.free, units)
	out := p.free[:n:n]
	p.free = p.free[n:]
	return out
}

// same returns a hash that is equal for texts with the same words in the same order. For a text too
// short to be compared word by word, it is the hash of the content.
func (p *Fingerprint) same(short bool, buf []byte) (uint64, []byte) {
	if short {
		return p.Content, buf
	}
	buf = buf[:0]
	for _, u := range p.Units {
		buf = binary.LittleEndian.AppendUint32(buf, uint32(u.word()))
	}
	return city.Hash64(buf), buf
}

// englishNo is a negation in English only.
const englishNo = "no"

// negates reports whether word is a negation in Portuguese, English or Chinese.
func negates(word string) bool {
	switch word {
	case "não", "nao", "nunca", "jamais", "nem", "sem", "ninguém", "nenhum", "nenhuma", "exceto", "excepto",
		"not", "never", "without", "cannot", "neither", "nor", "nobody", "none", "except",
		"不", "没", "沒", "无", "無", "未", "别", "別", "非", "勿", "莫", "否":
		return true
	}
	return len(word) > 3 && (word[len(word)-3:] == "n't" || len(word) > 5 && word[len(word)-5:] == "n’t")
}

// englishWord reports whether word is one of the short words that are frequent in English and rare
// elsewhere.
func englishWord(word string) bool {
	switch word {
	case "the", "is", "are", "and", "of", "to", "it", "this", "that", "have", "has", "there", "you", "with", "was",
		"we", "they":
		return true
	}
	return false
}

// ErrFingerprint is wrapped by every error of DecodeFingerprint.
var ErrFingerprint = errors.New("not a fingerprint of this version")

// Append appends p in the form that DecodeFingerprint reads: a version byte, the id
// with its length (uvarint), time (varint), official (byte), content and bits (8
// bytes each, big endian), features and number of units (uvarint), units (4
// bytes each, big endian).
func (p Fingerprint) Append(b []byte) []byte {
	b = append(b, FingerprintVersion)
	b = binary.AppendUvarint(b, uint64(len(p.ID)))
	b = append(b, p.ID...)
	b = binary.AppendVarint(b, p.Time)
	official := byte(0)
	if p.Official {
		official = 1
	}
	b = append(b, official)
	b = binary.BigEndian.AppendUint64(b, p.Content)
	b = binary.BigEndian.AppendUint64(b, p.Bits)
	b = binary.AppendUvarint(b, uint64(p.Features))
	b = binary.AppendUvarint(b, uint64(len(p.Units)))
	for _, u := range p.Units {
		b = binary.BigEndian.AppendUint32(b, uint32(u))
	}
	return b
}

// DecodeFingerprint decodes what Append wrote. Any other input is an error, also an id longer than MaxID,
// more units than MaxUnits, or trailing bytes. It allocates no more than the input fills.
func DecodeFingerprint(b []byte) (Fingerprint, error) {
	r := reader{rest: b}
	if v := r.bytes(1); v == nil || v[0] != FingerprintVersion {
		return Fingerprint{}, fmt.Errorf("decode fingerprint: version: %w", ErrFingerprint)
	}
	var p Fingerprint
	p.ID = string(r.bytes(r.uvarint(MaxID)))
	p.Time = r.varint()
	official := r.bytes(1)
	p.Content, p.Bits = r.uint64(), r.uint64()
	p.Features = r.uvarint(MaxText)
	units := r.bytes(4 * r.uvarint(MaxUnits))
	if r.failed || len(r.rest) > 0 || official[0] > 1 {
		return Fingerprint{}, fmt.Errorf("decode fingerprint: %w", ErrFingerprint)
	}
	p.Official = official[0] == 1
	for ; len(units) > 0; units = units[4:] {
		p.Units = append(p.Units, Unit(binary.BigEndian.Uint32(units)))
	}
	return p, nil
}

// reader reads fields from rest. failed is set when one is missing.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) bytes(n int) []byte {
	if r.failed || len(r.rest) < n {
		r.failed = true
		return nil
	}
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}

func (r *reader) uint64() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *reader) uvarint(limit int) int {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > uint64(limit) {
		r.failed = true
		return 0
	}
	r.rest = r.rest[n:]
	return int(v)
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.failed = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}
