// Package ui is one peer's dashboard. The server renders its pages with html/template. They use
// a style sheet and a small script; everything is embedded, and nothing is loaded from
// elsewhere. The dashboard shows the peer, the swarm, the latest records and the errors, and
// searches the whole swarm. It takes seeds, and persons' verdicts on which accounts belong to
// the community. Everything works without the script, which only updates the figures.
//
// The dashboard shows text from pages that anyone on the web wrote. The templates escape it. A
// link is made only for an http or https address, and following it reveals nothing about the
// dashboard. The Content-Security-Policy of package api blocks inline scripts. The dashboard
// does not decide which clients get access; api's Server does.
package ui
