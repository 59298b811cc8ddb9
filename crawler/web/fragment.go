package web

import (
	"fmt"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/web/utf8text"
	"github.com/echo-node/echo-node/store"
)

// fragmentTime is the time limit for parsing one fragment.
const fragmentTime = time.Second

// Fragment returns the text and the links of a piece of HTML that is not a whole page, such as a
// post or a profile text. addr is where it was found; relative links are resolved against it. The
// result has at most maxText bytes (default 64 KiB) and maxLinks links (default 100). Fragment
// parses as safely as for a page: an error is a fault of the parser. cut reports that there was
// more.
func Fragment(fragment, addr string, maxText, maxLinks int) (text string, found []store.Link, cut bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			text, found, err = "", nil, fmt.Errorf("web: fragment: the parser panicked: %.80v", r)
		}
	}()
	if maxText <= 0 {
		maxText = 64 << 10
	}
	if maxLinks <= 0 {
		maxLinks = 100
	}
	r := newReader(input{url: addr, maxText: maxText, maxLinks: maxLinks, maxTime: fragmentTime})
	r.read(utf8text.NewReader(strings.NewReader(fragment)))
	r.closeAnchor()
	over := false
	if len(r.refs) > 0 {
		found, over = links(addr, r.base, r.refs, maxLinks, maxLinkBytes)
	}
	return r.main.text(), found, over || r.main.full || r.stop != "", nil
}
