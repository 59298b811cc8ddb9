package status

import (
	"time"

	"github.com/echo-node/echo-node/node/api"
)

// streams returns the streams that this peer reads, as status shows them.
func (b *Board) streams() (out []api.Stream) {
	for _, s := range b.Social.Streams() {
		out = append(out, api.Stream{Address: s.Address, ConnectedSince: instant(s.Since), Accounts: s.Accounts,
			Connects: s.Connects,
			Events:   s.Events, Bad: s.Bad, Lost: s.Lost, LastEvent: instant(s.Last), Why: s.Why})
	}
	return out
}

// instant returns t in UTC, or nil for the zero time.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// streamMetrics returns the streams as samples for Prometheus.
func streamMetrics(all []api.Stream) (out []api.Metric) {
	for _, s := range all {
		labels := map[string]string{"stream": s.Address}
		add := func(name, kind, help string, v float64) {
			out = append(out, api.Metric{Name: name, Help: help, Kind: kind, Value: v, Labels: labels})
		}
		connected := 0.0
		if s.ConnectedSince != nil {
			connected = 1
		}
		add("echo_stream_connected", "gauge", "1 while the stream is connected.", connected)
		add("echo_stream_accounts", "gauge", "Accounts whose events the stream is asked for.", float64(s.Accounts))
		add("echo_stream_connects_total", "counter", "Connections to the stream that were tried, since the start.",
			float64(s.Connects))
		add("echo_stream_events_total", "counter", "Events that the stream sent, since the start.", float64(s.Events))
		add("echo_stream_bad_total", "counter", "What the stream sent that was no event, since the start.",
			float64(s.Bad))
		add("echo_stream_lost_total", "counter",
			"Events that no visit of their account could take in time, since the start.", float64(s.Lost))
	}
	return out
}
