package communitytest

import (
	"testing"

	"github.com/echo-node/echo-node/crawler/judge/community"
	"github.com/echo-node/echo-node/partition/racetest"
)

func judgeOf(t testing.TB, name string) *community.Judge {
	t.Helper()
	c, err := community.Embedded(name)
	if err != nil {
		t.Fatal(err)
	}
	j, err := community.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// The figures that the judge must reach, for two communities that differ only in the data file.
// Seed 1 was used to choose the weights, the others were not.
func TestTwoCommunities(t *testing.T) {
	for _, tt := range []struct {
		name   string
		mirror bool
	}{{"portugal", false}, {"brazil", true}} {
		j := judgeOf(t, tt.name)
		seeds := []uint64{1, 301, 302}
		if racetest.Small(t) {
			seeds = seeds[2:]
		}
		for _, seed := range seeds {
			w := New(Options{Seed: seed, People: 2000, Mirror: tt.mirror})
			r, verdicts := Grow(j, w)
			in, out, undecided := r.Precision()
			off, classes := Calibration(w, verdicts)
			t.Logf("%s seed %d: in %.4f right of %d, out %.4f of %d, undecided %.4f; %d calls, wrong %v, undecided %v, off by %.3f %.2f", tt.name, seed, in, r.In, out, r.Out, undecided, r.Calls,
				r.Wrong, r.Missing, off, classes)
			if in < 0.97 || out < 0.995 || undecided > 0.05 {
				t.Errorf("%s seed %d: in %.4f (0.97), out %.4f (0.995), undecided %.4f (0.05)", tt.name, seed, in, out,
					undecided)
			}
		}
	}
}
