package lang

import (
	"bytes"
	"slices"
	"strings"
)

// PaperParams are what the method of the paper learns from posts.
type PaperParams struct {
	Profile [26]byte // the letters by falling frequency in posts from Portugal
	Far     int32    // the least distance from Profile that is another language
	Brazil  int32    // the least evidence in 1,000 words that is Brazilian
}

// Paper is the method of E. J. S. L. de Oliveira, "TwitterEcho" (MSc
// dissertation, FEUP, 2011), as a baseline: the distance of the ranks of the
// letters from a profile (after Cavnar and Trenkle), and when that is short, evidence of Brazil:
// laughter (kkk, rsr), gerunds, and about seventy Brazilian words. The texts of
// a person are judged as one. What the dissertation does not give is ours: the
// list of words, the thresholds (fitted by train-lang), and that evidence counts by 1,000 words.
//
// It answers PtPT, PtBR, or Other for all that is not Portuguese.
func (j *Judge) Paper(texts ...string) Lang {
	e := MeasurePaper(j.p.Paper.Profile, texts...)
	switch {
	case e.Distance >= j.p.Paper.Far:
		return Other
	case e.Brazil >= j.p.Paper.Brazil:
		return PtBR
	}
	return PtPT
}

// PaperEvidence is what the paper's method sees in texts.
type PaperEvidence struct{ Distance, Brazil int32 }

// MeasurePaper is the paper's evidence in texts by a profile.
func MeasurePaper(profile [26]byte, texts ...string) PaperEvidence {
	var counts [26]int
	words, brazil := 0, 0
	for _, text := range texts {
		s := newScanner(text)
		for s.next() {
			w := s.word[:s.n]
			for _, b := range w {
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
	e := PaperEvidence{Distance: distance(profile, Rank(counts), counts)}
	if words > 0 {
		e.Brazil = int32(1000 * brazil / words)
	}
	return e
}

// Rank is the letters by falling count, equal ones by the alphabet.
func Rank(counts [26]int) (ranked [26]byte) {
	for i := range ranked {
		ranked[i] = 'a' + byte(i)
	}
	slices.SortStableFunc(ranked[:], func(a, b byte) int { return counts[b-'a'] - counts[a-'a'] })
	return ranked
}

// distance is out-of-place: how far each letter of the profile is from its
// rank; one that is missing costs 26 when it is the first of the profile, 25
// when the second, and so on.
func distance(profile, ranked [26]byte, counts [26]int) int32 {
	sum := 0
	for rank, b := range profile {
		if b < 'a' || b > 'z' || counts[b-'a'] == 0 {
			sum += 26 - rank
			continue
		}
		d := bytes.IndexByte(ranked[:], b) - rank
		sum += max(d, -d)
	}
	return int32(sum)
}

// notGerunds end like gerunds and are none.
const notGerunds = " quando mundo segundo fundo lindo comando bando brando profundo imundo redondo oriundo reverendo dividendo estupendo horrendo tremendo infindo bem-vindo vindo fecundo moribundo vagabundo contrabando "

// brazilianWords are forms that hardly anybody writes in Portugal, without accents.
const brazilianWords = " voce voces vc vcs ce ces ta to tava ne pra pro pros pras cara caras galera legal beleza blz valeu vlw moleque guri guria mina menino menina " +
	"onibus celular trem banheiro sorvete cafezinho goleiro gol time times torcida torcedor esporte usuario usuarios arquivo arquivos tela mouse senha salvar registro " +
	"fato fatos contato equipe conosco brasil brasileiro brasileira carioca paulista gaucho mineiro reais prefeito vestibular faculdade bunda saudade gostoso gostosa " +
	"oi tchau ai gente nossa demais bagunca bacana chope churrasco treco fofoca "

func brazilian(w []byte) bool {
	switch {
	case bytes.Contains(w, []byte("kkk")), bytes.Contains(w, []byte("rsr")):
		return true
	case len(w) > 4 && bytes.HasSuffix(w, []byte("ndo")):
		return !strings.Contains(notGerunds, " "+string(w)+" ")
	}
	return strings.Contains(brazilianWords, " "+string(w)+" ")
}
