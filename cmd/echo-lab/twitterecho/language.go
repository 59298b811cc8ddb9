package twitterecho

import (
	"bytes"
	_ "embed" // the fitted parameters
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/echo-node/echo-node/crawler/judge/lang"
)

//go:embed fitted.json
var fitted []byte

// ErrParams is wrapped by every error of ParseParams.
var ErrParams = errors.New("twitterecho: not parameters")

// Params are what the method learns from posts.
type Params struct {
	// the letters a to z by falling frequency in posts from Portugal
	Profile string `json:"profile"`
	// the smallest distance from Profile that means another language
	Far    int32 `json:"far"`
	Brazil int32 `json:"brazil"` // the smallest evidence in 1,000 words that means Brazilian
}

// Fitted returns the parameters that train-lang fitted.
func Fitted() (Params, error) { return ParseParams(fitted) }

// ParseParams reads what Encode wrote.
func ParseParams(b []byte) (p Params, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return p, fmt.Errorf("%w: %w", ErrParams, err)
	}
	letters := []byte(p.Profile)
	slices.Sort(letters)
	if string(letters) != alphabet {
		return p, fmt.Errorf("%w: the profile %q does not have each letter once", ErrParams, p.Profile)
	}
	return p, nil
}

// Encode returns the text of a file of parameters.
func (p Params) Encode() []byte {
	return fmt.Appendf(nil, "{\n  \"profile\": %q,\n  \"far\": %d,\n  \"brazil\": %d\n}\n", p.Profile, p.Far, p.Brazil)
}

// Language judges the texts of one person as one text. It returns PtPT, PtBR, or Other for
// everything that is not Portuguese. A text is Portuguese if it is near the profile (the
// distance is that of Cavnar and Trenkle). It is Brazilian if it has enough laughter (kkk,
// rsr), gerunds and Brazilian words.
func (p Params) Language(texts ...string) lang.Lang {
	e := Measure(p.Profile, texts...)
	switch {
	case e.Distance >= p.Far:
		return lang.Other
	case e.Brazil >= p.Brazil:
		return lang.PtBR
	}
	return lang.PtPT
}

// Evidence is what the method sees in texts: the distance from the profile, and the number of
// signs of Brazil in 1,000 words.
type Evidence struct{ Distance, Brazil int32 }

// Measure returns the evidence in texts. The words are those that echo-node's judge reads.
func Measure(profile string, texts ...string) Evidence {
	var counts [len(alphabet)]int
	words, brazil := 0, 0
	for _, text := range texts {
		for w := range lang.Words(text) {
			for _, b := range []byte(w) {
				if b >= 'a' && b <= 'z' {
					counts[b-'a']++
				}
			}
			words++
			if brazilian(w) {
				brazil++
			}
		}
	}
	e := Evidence{Distance: distance(profile, counts)}
	if words > 0 {
		e.Brazil = int32(1000 * brazil / words)
	}
	return e
}

const alphabet = "abcdefghijklmnopqrstuvwxyz"

// Rank returns the letters by falling count. Letters with equal counts keep the order of the
// alphabet.
func Rank(counts [len(alphabet)]int) string {
	ranked := []byte(alphabet)
	slices.SortStableFunc(ranked, func(a, b byte) int { return counts[b-'a'] - counts[a-'a'] })
	return string(ranked)
}

// distance returns the "out of place" distance: how far each letter of the profile is from its
// rank in the texts. A letter that the texts lack costs 26 if it is the first of the profile,
// 25 if it is the second, and so on.
func distance(profile string, counts [len(alphabet)]int) int32 {
	ranked, sum := Rank(counts), 0
	for rank, b := range []byte(profile) {
		if b < 'a' || b > 'z' || counts[b-'a'] == 0 {
			sum += len(alphabet) - rank
			continue
		}
		d := strings.IndexByte(ranked, b) - rank
		sum += max(d, -d)
	}
	return int32(sum)
}

// notGerunds are words that end like gerunds but are none.
const notGerunds = " quando mundo segundo fundo lindo comando bando brando profundo imundo redondo oriundo" +
	" reverendo dividendo estupendo horrendo tremendo infindo bem-vindo vindo fecundo moribundo vagabundo contrabando "

// brazilianWords are forms that hardly anybody writes in Portugal, without accents.
const brazilianWords = " voce voces vc vcs ce ces ta to tava ne pra pro pros pras cara caras galera legal beleza blz" +
	" valeu vlw moleque guri guria mina menino menina onibus celular trem banheiro sorvete cafezinho goleiro gol time" +
	" times torcida torcedor esporte usuario usuarios arquivo arquivos tela mouse senha salvar registro fato fatos" +
	" contato equipe conosco brasil brasileiro brasileira carioca paulista gaucho mineiro reais prefeito vestibular" +
	" faculdade bunda saudade gostoso gostosa oi tchau ai gente nossa demais bagunca bacana chope churrasco treco" +
	" fofoca "

func brazilian(w string) bool {
	switch {
	case strings.Contains(w, "kkk"), strings.Contains(w, "rsr"):
		return true
	case len(w) > 4 && strings.HasSuffix(w, "ndo"):
		return !strings.Contains(notGerunds, " "+w+" ")
	}
	return strings.Contains(brazilianWords, " "+w+" ")
}
