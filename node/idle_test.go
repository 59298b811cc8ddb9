package node

import (
	"testing"
)

func TestQuiet(t *testing.T) {
	idle := report{Idle: true, Sent: 3, Received: 2, Keys: 5, Acting: 8}
	busy := report{Sent: 3, Received: 2, Keys: 5, Acting: 8}
	moved := report{Idle: true, Sent: 4, Received: 2, Keys: 5, Acting: 8}
	short := report{Idle: true, Sent: 3, Received: 2, Keys: 5, Acting: 7}
	empty := report{Idle: true, Acting: 8}
	w := func(a, b report, missing ...string) wave {
		return wave{reports: map[string]report{"a": a, "b": b}, missing: missing, total: 16}
	}
	for _, tc := range []struct {
		name      string
		prev, cur wave
		want      bool
	}{
		{"all idle twice, nothing moved", w(idle, idle), w(idle, idle), true},
		{"a slice that nobody acts in", w(idle, short), w(idle, short), false},
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

// A member that was idle and vanished counts as idle, because it may have found the swarm done
// first. It does not count once anything has moved, because a link may have reached it.
func TestWhoVanishedIsIdleWhileNothingMoves(t *testing.T) {
	idle := report{Idle: true, Sent: 3, Received: 2, Keys: 5, Acting: 8}
	sent := report{Idle: true, Sent: 4, Received: 2, Keys: 5, Acting: 8}
	both := func(a, b report) wave { return wave{total: 16, reports: map[string]report{"a": a, "b": b}} }
	alone := func(a report) wave { return wave{total: 16, reports: map[string]report{"a": a}} }
	mute := wave{reports: map[string]report{}, missing: []string{"a"}}
	type step struct {
		w    wave
		away []string
		want bool
	}
	b := []string{"b"}
	for name, steps := range map[string][]step{
		"it left when all was done": {{both(idle, idle), nil, false},
			{both(idle, idle), nil, true}, {alone(idle), b, true}, {alone(idle), b, true}},
		"and another is slow once": {{both(idle, idle), nil, false},
			{both(idle, idle), nil, true}, {mute, b, false}, {alone(idle), b, false}, {alone(idle), b, true}},
		"a link went to it then": {{both(idle, idle), nil, false},
			{both(idle, idle), nil, true}, {alone(sent), b, false}, {alone(sent), b, false}, {alone(sent), b, false}},
		"a link went to it after it spoke, in the same wave": {{both(idle, idle), nil, false},
			{both(idle, idle), nil, true}, {both(sent, idle), nil, false}, {alone(sent), b, false},
			{alone(sent), b, false}},
		"it was idle once": {{both(idle, idle), nil, false}, {alone(idle), b, false},
			{alone(idle), b, false}},
		"it was never seen": {{alone(idle), b, false}, {alone(idle), b, false}},
	} {
		var w watch
		for i, s := range steps {
			if got := w.next(s.w, s.away); got != s.want {
				t.Errorf("%s: wave %d is quiet: %v", name, i, got)
				break
			}
		}
	}
}
