package node

import "testing"

func TestQuiet(t *testing.T) {
	idle := report{Idle: true, Sent: 3, Received: 2, Keys: 5}
	busy := report{Sent: 3, Received: 2, Keys: 5}
	moved := report{Idle: true, Sent: 4, Received: 2, Keys: 5}
	empty := report{Idle: true}
	w := func(a, b report, missing ...string) wave {
		return wave{reports: map[string]report{"a": a, "b": b}, missing: missing}
	}
	for _, tc := range []struct {
		name      string
		prev, cur wave
		want      bool
	}{
		{"all idle twice, nothing moved", w(idle, idle), w(idle, idle), true},
		{"one busy now", w(idle, idle), w(idle, busy), false},
		{"one was busy", w(idle, busy), w(idle, idle), false},
		{"idle twice, but a link went between", w(idle, idle), w(idle, moved), false},
		{"before the first seed", w(empty, empty), w(empty, empty), false},
		{"one peer without keys", w(idle, empty), w(idle, empty), true},
		{"a member does not answer", w(idle, idle), w(idle, idle, "c"), false},
		{"a member did not answer", w(idle, idle, "c"), w(idle, idle), false},
		{"a new member", wave{reports: map[string]report{"a": idle}}, w(idle, idle), false},
	} {
		if got := quiet(tc.prev, tc.cur); got != tc.want {
			t.Errorf("%s: quiet is %v", tc.name, got)
		}
	}
}
