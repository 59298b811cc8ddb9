// Package ui is one peer's dashboard: pages made on the server with
// html/template, a style sheet and a small script, all embedded, nothing from
// elsewhere. It shows the peer, the swarm, what was fetched last and the errors,
// searches the whole swarm, and takes seeds, and a person's word on who belongs to
// the community. Everything works without the script, which only keeps the figures fresh.
//
// What it shows comes from pages that anybody on the web wrote. The templates
// escape it, a link is made only of an http or https address and tells the
// other side nothing of us, and the Content-Security-Policy of package api lets
// no inline script run. It decides nothing about who may ask: api's Server does.
package ui
