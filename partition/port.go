package partition

import (
	"fmt"
	"strconv"
	"strings"
)

// BadPort reports whether browsers refuse to send requests to a web server at that port,
// because it belongs to another service. The list is that of the Fetch Standard
// (https://fetch.spec.whatwg.org/#port-blocking), as of 2026. No Key is made from a URL with
// such a port, so a page cannot cause a request to a mail server. The list does not change the
// canonical text of a URL. KeyFromWire accepts such Keys, because rows of older data
// directories have them; they are not fetched.
func BadPort(port uint16) bool {
	switch port {
	case 0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
		109,
		110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530,
		531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190,
		5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080:
		return true
	}
	return false
}

// Port returns the port in k, and false when k has none. The default port of a scheme is never
// in a Key.
func (k Key) Port() (uint16, bool) {
	service, rest, _ := strings.Cut(string(k), ":")
	a := ""
	switch href := fileURL(rest); {
	case service == "web" || service == "feed" || service == "media":
		a = authority(rest)
	case href != "":
		a = authority(href)
	case service == "mastodon":
		a = instance(rest)
	case service == "bluesky":
		a, _, _ = strings.Cut(strings.TrimPrefix(rest, "did:web:"), "/")
		a = strings.Replace(a, "%3A", ":", 1)
	}
	return portIn(a)
}

// portIn returns the port of a canonical authority, if it has one.
func portIn(authority string) (uint16, bool) {
	i := strings.LastIndexByte(authority, ':')
	if i < 0 || strings.HasSuffix(authority, "]") {
		return 0, false
	}
	n, err := strconv.ParseUint(authority[i+1:], 10, 16)
	return uint16(n), err == nil
}

// refusePort returns an error for a port that no Key may have.
func refusePort(port uint16, named bool) error {
	if named && BadPort(port) {
		return fmt.Errorf("%w: port %d belongs to another service than the web", ErrKey, port)
	}
	return nil
}
