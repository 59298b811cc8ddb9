package langmodel

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/echo-node/echo-node/crawler/judge/lang"
)

// Sample is one text with what is known of it.
type Sample struct {
	Lang     lang.Lang // PtPT to Other; Pt: the same in both varieties
	Register string
	Source   string // the package or repository of the text
	Text     string
}

// heldOut are sources that are never used for training: non-commercial licences, or none.
const heldOut = " git:UD_Italian-PoSTWITA git:UD_Galician-CTG git:osu-resources git:abapinho git:VdA-Hackathon git:dslcc "

func (s Sample) heldOut() bool { return strings.Contains(heldOut, " "+s.Source+" ") }

// mistaken reports whether a sample's label is wrong: the European Portuguese of GIMP's manual
// is the English text, not translated.
func (s Sample) mistaken() bool { return s.Lang == lang.PtPT && s.Source == "gimp-help" }

// fold distributes sources over n folds.
func (s Sample) fold(n int) int {
	h := fnv.New32a()
	h.Write([]byte(s.Source))
	return int(h.Sum32()>>8) % n
}

// Load reads DIR/train/LANG.REGISTER.tsv.gz (lang TAB text) with the sources in the .src.gz
// files next to them, and DIR/ambiguous_pt.tsv.gz if it exists. Without a directory train, DIR
// itself has the files. Files with a wrong label are left out (mistaken). The order is that of
// names and lines.
func Load(dir string) ([]Sample, error) {
	root := filepath.Join(dir, "train")
	if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
		root = dir
	}
	files, err := filepath.Glob(filepath.Join(root, "*.*.tsv.gz"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("langmodel: no files LANG.REGISTER.tsv.gz in %s", root)
	}
	var all []Sample
	for _, file := range files {
		tag, register, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".tsv.gz"), ".")
		l, ok := lang.ParseLang(tag)
		if !ok || l > lang.Pt {
			return nil, fmt.Errorf("langmodel: %s: no language %q", file, tag)
		}
		texts, err := readLines(file)
		if err != nil {
			return nil, err
		}
		sources, err := readLines(strings.TrimSuffix(file, ".tsv.gz") + ".src.gz")
		if err != nil {
			return nil, err
		}
		if len(texts) != len(sources) {
			return nil, fmt.Errorf("langmodel: %s: %d texts, %d sources", file, len(texts), len(sources))
		}
		for i, line := range texts {
			_, text, _ := strings.Cut(line, "\t")
			if s := (Sample{l, register, sources[i], text}); !s.mistaken() {
				all = append(all, s)
			}
		}
	}
	lines, err := readLines(filepath.Join(dir, "ambiguous_pt.tsv.gz"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, line := range lines {
		if _, text, ok := strings.Cut(line, "\t"); ok {
			all = append(all, Sample{lang.Pt, "ui", "ambiguous", text})
		}
	}
	return all, nil
}

func readLines(file string) ([]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var lines []string
	sc := bufio.NewScanner(z)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		lines = append(lines, sc.Text())
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return lines, nil
}

// others are the languages in Latin script that count as Other, by the names of their
// catalogues.
const others = "af ast bs ca cs cy da de eo et eu fi fur ga hr hu id is lt lv ms nb nl nn oc pl ro sk sl sq sv tr vi"

const (
	perCatalogue = 120  // texts of one catalogue
	perOther     = 1500 // texts of one other language
)

// Catalogues reads texts in other languages from GNU message catalogues,
// DIR/LANG/LC_MESSAGES/*.mo. The source is the catalogue's name.
func Catalogues(dir string) ([]Sample, error) {
	var all []Sample
	for _, l := range strings.Fields(others) {
		files, err := filepath.Glob(filepath.Join(dir, l, "LC_MESSAGES", "*.mo"))
		if err != nil {
			return nil, err
		}
		n := 0
		for _, file := range files {
			texts, err := readCatalogue(file)
			if err != nil {
				return nil, err
			}
			for i, text := range texts {
				if i == perCatalogue || n == perOther {
					break
				}
				all = append(all, Sample{lang.Other, "ui-" + l, strings.TrimSuffix(filepath.Base(file), ".mo"), text})
				n++
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("langmodel: no message catalogues in %s: there would be nothing to learn other languages from", dir)
	}
	return all, nil
}

// readCatalogue returns the translated texts of three words or more in one .mo file (GNU
// gettext manual, "The Format of GNU MO Files").
func readCatalogue(file string) ([]string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var order binary.ByteOrder = binary.LittleEndian
	if len(b) < 28 {
		return nil, fmt.Errorf("%s: too short for a catalogue", file)
	}
	if order.Uint32(b) != 0x950412de {
		if order = binary.BigEndian; order.Uint32(b) != 0x950412de {
			return nil, fmt.Errorf("%s: not a catalogue", file)
		}
	}
	n, ids, strs := int(order.Uint32(b[8:])), int(order.Uint32(b[12:])), int(order.Uint32(b[16:]))
	at := func(table, i int) string {
		if table+8*i+8 > len(b) {
			return ""
		}
		length, off := int(order.Uint32(b[table+8*i:])), int(order.Uint32(b[table+8*i+4:]))
		if off+length > len(b) {
			return ""
		}
		return string(b[off : off+length])
	}
	noise := regexp.MustCompile(`%[-+ #0-9.$lhz']*[a-zA-Z]|<[^>]*>|\{[^}]*\}|\\[a-z]|[&_]|--?[a-z-]+|https?:\S+`)
	var texts []string
	for i := range n {
		id, text := at(ids, i), at(strs, i)
		if id == "" || id == text { // the header, or not translated
			continue
		}
		text, _, _ = strings.Cut(text, "\x00")
		text = strings.Join(strings.Fields(noise.ReplaceAllString(text, " ")), " ")
		if len(text) > 240 || len(strings.Fields(text)) < 3 || slices.Contains(texts, text) {
			continue
		}
		if texts = append(texts, text); len(texts) == perCatalogue {
			break
		}
	}
	return texts, nil
}
