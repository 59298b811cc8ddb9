package main

import (
	"math"
	"strings"

	"github.com/echo-node/echo-node/crawler/focus/lang"
)

type langCmd struct {
	Person bool `help:"Judge people: the input is id TAB text, the output one verdict for each id, in the order in which they first occur."`
}

// Help is shown under the usage.
func (langCmd) Help() string {
	return "Examples:\n  echo 'Malta, o comboio está atrasado outra vez' | echo-node focus lang\n  echo-node focus lang --person < posts.tsv\n\n" +
		"A line of input gives {lang, confidence, scores}. lang is pt-PT, pt-BR, es, gl, en, fr, it or other; pt when it is Portuguese of either variety; und when there is too little to tell. " +
		"confidence is how likely that is right, scores are the probabilities of the eight languages.\n\n" +
		"With --person: {id, lang, confidence, shares}; shares are the parts of the texts in each language. lang is the main one, English set aside while another has a fifth. " +
		"Give 10 texts of a person or more: one short text often does not tell Portugal and Brazil apart."
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

// micro rounds to six digits: more would be noise.
func micro(x float64) float64 { return math.Round(x*1e6) / 1e6 }
