package account

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/echo-node/echo-node/partition"
)

// KeyOf is the Key of an account, "" when it is none.
func KeyOf(text string) partition.Key {
	k, err := partition.ParseKey(text)
	if err != nil || k.Kind() != partition.KindAccount {
		return ""
	}
	return k
}

// Unescaped is a part of a Key as it was before it was one.
func Unescaped(part string) string {
	text, err := url.PathUnescape(part)
	if err != nil {
		return part // a Key has no other escapes than good ones
	}
	return text
}

// NameOf is a Key without its service, with its escapes: a DID may have %3A in it.
func NameOf(k partition.Key) string {
	_, name, _ := strings.Cut(string(k), ":")
	return name
}

// Query is what a search Key asks for.
func Query(k partition.Key) string {
	_, q, _ := strings.Cut(string(k), "search/")
	return Unescaped(q)
}

// Subject is whom a Key is about as it is looked up: its account, or itself where that is to be found out.
func Subject(k partition.Key) partition.Key {
	if k.Kind() == partition.KindName {
		return k
	}
	return k.Account()
}

// Base is the address of a server's API. A loopback address has no certificate that
// anybody would have signed, so it is asked without one.
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

// Host is that of an http address without a path, with the port where there is one; "" when it is none.
func Host(at string) string {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.Fragment != "" {
		return ""
	}
	return strings.ToLower(u.Host)
}
