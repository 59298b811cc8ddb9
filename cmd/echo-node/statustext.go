package main

import (
	"fmt"
	"time"

	"github.com/echo-node/echo-node/node/api"
)

// streamText describes a stream.
func streamText(s api.Stream) string {
	how := "not connected: " + s.Why
	if s.ConnectedSince != nil {
		how = "connected since " + s.ConnectedSince.Format(time.RFC3339)
	}
	last := "never"
	if s.LastEvent != nil {
		last = s.LastEvent.Format(time.RFC3339)
	}
	return fmt.Sprintf("%s: %s; %d accounts, %d events, %d bad, %d lost, the last %s; %d connections", s.Address, how,
		s.Accounts, s.Events, s.Bad, s.Lost, last, s.Connects)
}

// clockText says which peer's clock is ahead of that of the responding peer.
func clockText(c api.ClockAhead) string {
	who := "a peer"
	if c.Peer != "" {
		who = "…" + tail(c.Peer)
	}
	by := time.Duration(c.Seconds * float64(time.Second)).Round(time.Second)
	return fmt.Sprintf("%s is %s ahead of this peer: one of the two clocks is wrong", who, by)
}

// roundText says how a server's old posts are visited again.
func roundText(r api.Round) string {
	text := fmt.Sprintf("%s: %d of %d accounts and timelines, each looked at again in %s", r.Site, r.Posts, r.Keys,
		time.Duration(r.Period*float64(time.Second)).Round(time.Minute))
	if r.Late > 0 {
		text += fmt.Sprintf("; %d late: see gaps", r.Late)
	}
	return text
}

// rejectedText describes a token that its server rejects.
func rejectedText(r api.Rejected) string {
	text := fmt.Sprintf("%s is rejected by %s since %s", r.Credential, r.Site, r.Since.Local().Format(time.DateTime))
	if r.Said != "" {
		text += fmt.Sprintf(", which says %q", r.Said)
	}
	return text
}

// budgetText describes a budget in one line.
func budgetText(b api.Budget) string {
	who := b.Credential
	if who == "" {
		who = "no credential"
	}
	limit := fmt.Sprintf("%d of %d used", b.Used, b.Limit)
	if b.Paced {
		limit = fmt.Sprintf("says no limit; at even gaps, %d in %s at most", b.Limit,
			time.Duration(b.Window*float64(time.Second)).Round(time.Second))
	}
	text := fmt.Sprintf("%s %s, %s: %s, %d refused", b.Site, who, b.Bucket, limit, b.Refused)
	if b.ResetsAt != nil && !b.Paced {
		text += ", resets " + b.ResetsAt.Local().Format(time.TimeOnly)
	}
	if b.Held != "" {
		text += "; held: " + b.Held
	}
	return text
}
