package main

import (
	"math"
	"strings"

	"github.com/echo-node/echo-node/crawler/judge/lang"
)

type langCmd struct {
	Person bool `help:"Judge people: a line of input is id TAB text. The output has one verdict for each id, in the order of their first lines."`
}

// Help returns the text below the usage.
func (langCmd) Help() string {
	return `Examples:
  echo 'Malta, o comboio está atrasado outra vez' | echo-node focus lang
  echo-node focus lang --person < posts.tsv

For each line of input, the output is {lang, confidence, scores}.
  lang        pt-PT, pt-BR, es, gl, en, fr, it or other; pt for Portuguese of either
              variety; und when the text is too short to tell
  confidence  the probability that lang is right
  scores      the probabilities of the eight languages

With --person, the output is {id, lang, confidence, shares}. shares has the part of the texts in
each language. lang is the main one; English is set aside when another has at least a fifth.
Give at least 10 texts of a person: one short text often does not tell Portugal and Brazil apart.`
}

// langLine is the output for one text (CLI.md).
type langLine struct {
	Lang       string             `json:"lang"`
	Confidence float64            `json:"confidence"`
	Scores     map[string]float64 `json:"scores"`
}

// personLine is the output for one person (CLI.md).
type personLine struct {
	ID         string             `json:"id"`
	Lang       string             `json:"lang"`
	Confidence float64            `json:"confidence"`
	Shares     map[string]float64 `json:"shares"`
}

// Run judges texts or people.
func (c *langCmd) Run(p *program) error {
	j, err := lang.Open()
	if err != nil {
		return err
	}
	if c.Person {
		return c.people(p, j)
	}
	w, enc := jsonLines(p.stdout)
	if err := eachLine(p.stdin, func(_ int, line string) error {
		v := j.Text(line)
		out := langLine{v.Lang.String(), micro(v.Confidence), make(map[string]float64, len(v.Scores))}
		for l, s := range v.Scores {
			out.Scores[lang.Lang(l).String()] = micro(s)
		}
		return enc.Encode(out)
	}); err != nil {
		return err
	}
	return w.Flush()
}

func (c *langCmd) people(p *program, j *lang.Judge) error {
	people := map[string]*lang.Person{}
	var ids []string
	if err := eachLine(p.stdin, func(n int, line string) error {
		id, text, ok := strings.Cut(line, "\t")
		if !ok || id == "" {
			return usage("standard input, line %d: want id TAB text", n)
		}
		if people[id] == nil {
			people[id] = j.Person()
			ids = append(ids, id)
		}
		people[id].Add(text)
		return nil
	}); err != nil {
		return err
	}
	w, enc := jsonLines(p.stdout)
	for _, id := range ids {
		v := people[id].Verdict()
		out := personLine{id, v.Lang.String(), micro(v.Confidence), make(map[string]float64, len(v.Shares))}
		for _, s := range v.Shares {
			out.Shares[s.Lang.String()] += micro(s.Share)
		}
		if err := enc.Encode(out); err != nil {
			return err
		}
	}
	return w.Flush()
}

// micro rounds to six digits, because more digits are noise.
func micro(x float64) float64 { return math.Round(x*1e6) / 1e6 }
