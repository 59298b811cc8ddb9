package rivals

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Names has the names of the rivals.
var Names = []string{"colly", "wget2", "scrapy"}

// parallel is how many requests each crawler may have under way.
const parallel = 64

//go:embed scrapy.py
var scrapyScript string

// contender is one crawler in one mode.
type contender struct {
	name    string
	missing string // why it cannot be run; "" = it can
	args    func(w *server) ([]string, error)
}

// contenders returns the crawlers that take part in the mode. None of the rivals makes an
// index.
func contenders(o Options, m Mode) []contender {
	own := contender{name: "echo-node", args: func(w *server) ([]string, error) {
		args := []string{o.Program, "crawl-peer", "--mode", string(m), "--dir", filepath.Join(o.Dir, string(m)),
			"--seeds", w.seeds, "--allow", prefix + ".0.0/16"}
		if o.Profiles != "" {
			args = append(args, "--profiles", filepath.Join(o.Profiles, string(m)))
		}
		return args, nil
	}}
	all := []contender{own}
	if m == Indexed {
		return all
	}
	for _, name := range o.Rivals {
		c := contender{name: name}
		switch name {
		case "colly":
			c.args = func(w *server) ([]string, error) {
				args := []string{o.Program, "crawl-colly", "--seeds", w.seeds, "--parallel", strconv.Itoa(parallel)}
				if m == Polite {
					args = append(args, "--delay", "1s")
				}
				return args, nil
			}
		case "wget2":
			c.missing = absent("wget2")
			c.args = func(w *server) ([]string, error) {
				args := []string{"wget2", "-q", "-r", "-l", "50", "--span-hosts", "--http2=off", "--delete-after",
					"--max-threads=" + strconv.Itoa(parallel), "-i", w.seeds}
				if m == Polite {
					args = append(args, "--wait=1")
				}
				return args, nil
			}
		case "scrapy":
			python := pythonWith("scrapy")
			if python == "" {
				c.missing = "no python3 has the module scrapy"
			}
			c.args = func(w *server) ([]string, error) {
				name := filepath.Join(o.Dir, "scrapy_crawl.py")
				delay := "0"
				if m == Polite {
					delay = "1"
				}
				return []string{python, name, w.seeds, strconv.Itoa(parallel), delay},
					os.WriteFile(name, []byte(scrapyScript), 0o600)
			}
		}
		all = append(all, c)
	}
	return all
}

func absent(program string) string {
	if _, err := exec.LookPath(program); err != nil {
		return program + " is not installed"
	}
	return ""
}

// pythonWith returns a Python that has the module: the first of the path, or the system's.
func pythonWith(module string) string {
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import "+module).Run() == nil {
			return python
		}
	}
	return ""
}

// readSeeds reads a file of URLs, one per line.
func readSeeds(name string) ([]string, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	urls := strings.Fields(string(b))
	if len(urls) == 0 {
		return nil, fmt.Errorf("%s: %w", name, errors.New("no URLs"))
	}
	return urls, nil
}
