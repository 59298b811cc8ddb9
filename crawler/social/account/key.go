package account

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/echo-node/echo-node/partition"
)

// KeyOf returns text as the Key of an account, "" if it is not one.
func KeyOf(text string) partition.Key {
	k, err := partition.ParseKey(text)
	if err != nil || k.Kind() != partition.KindAccount {
		return ""
	}
	return k
}

// Unescaped returns a part of a Key without its URL escapes.
func Unescaped(part string) string {
	text, err := url.PathUnescape(part)
	if err != nil {
		return part // not reached: the escapes of a Key are valid
	}
	return text
}

// NameOf returns a Key without its service. The escapes stay: a DID may contain %3A.
func NameOf(k partition.Key) string {
	_, name, _ := strings.Cut(string(k), ":")
	return name
}

// Query returns the search text of a search Key.
func Query(k partition.Key) string {
	_, q, _ := strings.Cut(string(k), "search/")
	return Unescaped(q)
}

// Subject returns the Key that a look-up asks for: the account of k, or k itself if k is a name.
func Subject(k partition.Key) partition.Key {
	if k.Kind() == partition.KindName {
		return k
	}
	return k.Account()
}

// Base returns the address of a server's API. No authority signs a certificate for a loopback
// address, so the scheme is http there.
func Base(server string) string {
	host := server
	if ap, err := netip.ParseAddrPort(server); err == nil {
		host = ap.Addr().String()
	} else if h, _, ok := strings.Cut(server, ":"); ok {
		host = h
	}
	if a, err := netip.ParseAddr(host); err == nil && a.IsLoopback() || host == "localhost" {
		return "http://" + server
	}
	return "https://" + server
}

// Host returns the host of an http or https address that has no path, with the port if there is
// one. It returns "" for other addresses.
func Host(at string) string {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.Fragment != "" {
		return ""
	}
	return strings.ToLower(u.Host)
}
