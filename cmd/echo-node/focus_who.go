package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/echo-node/echo-node/crawler/judge/community"
)

type whoCmd struct {
	Community string `default:"portugal" placeholder:"NAME|FILE" help:"The community: portugal or brazil, which are part of the program, or a file like theirs."`
	Overrides string `placeholder:"FILE" help:"Verdicts by people, which win over the judge. Each line is {\"id\",\"verdict\",\"by\",\"why\",\"at\"}; later ones replace earlier ones of the same id."`
	Mistakes  bool   `help:"Report where the judge contradicts --overrides, and the evidence for it, instead of verdicts."`
	Show      bool   `help:"Print the community's file and end. Use it to write your own."`
}

// Help returns the text below the usage.
func (whoCmd) Help() string {
	return `Examples:
  echo '{"id":"mastodon:ana@m.pt","bio":"natural de Viseu","location":"Londres","texts":["Bora lá, malta, que isto está fixe"]}' | echo-node focus who
  echo-node focus who --show > galicia.json      # then edit it
  echo-node focus who --community galicia.json < profiles.jsonl
  echo-node focus who --overrides said.jsonl --mistakes < profiles.jsonl

A line of input is a profile as JSON; every field may be missing:
  id, name, handle, bio, location, time_zone, lang, url, bot, fields [{name, value}]
  texts      what the account wrote; at least 10 are needed to know its language
  follows, followers, mentions, mentioned_by   {in, out}: how many of these accounts have that verdict
For each line, the output is {verdict, score, evidence} and the id. verdict is in, out or
undecided. score is the probability that the account belongs. evidence lists what speaks for it
(weight above 0) and against it. For an undecided account, ask lists what would decide it, best first.`
}

// whoInput is one line of input.
type whoInput struct {
	community.Profile
	community.Edges
	Texts []string `json:"texts"`
}

// whoLine is the output for one profile (CLI.md).
type whoLine struct {
	ID string `json:"id,omitempty"`
	community.Verdict
}

// Run judges profiles.
func (c *whoCmd) Run(p *program) error {
	text, err := communityText(c.Community)
	if err != nil {
		return err
	}
	if c.Show {
		_, err := p.stdout.Write(text)
		return err
	}
	if c.Mistakes && c.Overrides == "" {
		return usage("--mistakes: give --overrides, the verdicts to hold the judge against")
	}
	named, err := community.Parse(text)
	if err != nil {
		return usage("--community %s: %w", c.Community, err)
	}
	j, err := community.Open(named)
	if err != nil {
		return err
	}
	said := &community.Overrides{}
	if c.Overrides != "" {
		if said, err = readOverrides(c.Overrides); err != nil {
			return err
		}
	}
	w, enc := jsonLines(p.stdout)
	judged := map[string]community.Verdict{}
	if err := eachLine(p.stdin, func(n int, line string) error {
		if strings.TrimSpace(line) == "" {
			return nil
		}
		var in whoInput
		if err := json.Unmarshal([]byte(line), &in); err != nil {
			return usage("standard input, line %d: want a profile as a JSON object: %w", n, err)
		}
		v := j.Judge(in.Profile, in.Texts, in.Edges)
		if c.Mistakes {
			judged[in.ID] = v
			return nil
		}
		return enc.Encode(whoLine{in.ID, said.Apply(in.ID, v)})
	}); err != nil {
		return errors.Join(err, w.Flush()) // output the verdicts so far
	}
	if c.Mistakes {
		if err := enc.Encode(said.Mistakes(judged)); err != nil {
			return err
		}
	}
	return w.Flush()
}

// communityText returns the text of a community's file, embedded or not.
func communityText(name string) ([]byte, error) {
	if b, err := community.EmbeddedFile(name); err == nil {
		return b, nil
	}
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, usage("--community %s: neither a file nor one of %s", name,
			strings.Join(community.EmbeddedNames(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("--community: %w", err)
	}
	return b, nil
}

func readOverrides(name string) (*community.Overrides, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, usage("--overrides: %w", err)
	}
	said, err := community.ReadOverrides(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("--overrides %s: %w", name, err)
	}
	return said, nil
}
