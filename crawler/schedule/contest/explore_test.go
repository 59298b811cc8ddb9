package contest

import (
	"compress/gzip"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func load(t testing.TB, path string) []Thing {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	things, err := ReadHistory(z)
	if err != nil {
		t.Fatal(err)
	}
	return things
}

func TestExplore(t *testing.T) {
	spec := os.Getenv("EXPLORE") // world,budget,seeds,age,items,days,policies+
	if spec == "" {
		t.Skip()
	}
	for _, one := range strings.Fields(spec) {
		p := strings.Split(one, ",")
		num := func(i int) float64 { v, _ := strconv.ParseFloat(p[i], 64); return v }
		var world func(uint64) (World, error)
		if strings.HasSuffix(p[0], ".gz") {
			base, err := Replay("x", load(t, os.Getenv("ECHO_CHANGES")+"/"+p[0]), int(num(5)))
			if err != nil {
				t.Fatal(err)
			}
			world = Sampled(base, int(num(4)))
		} else {
			world = Drawn(p[0], int(num(4)), int(num(5)))
		}
		var pol []string
		if len(p) > 6 {
			pol = strings.Split(p[6], "+")
		}
		began := time.Now()
		es, err := Hold(Contest{World: world, Budget: num(1), Seeds: int(num(2)), AgePrice: num(3), Warm: func() float64 {
			if len(p) > 7 {
				return num(7)
			}
			return 0.2
		}(), Policies: pol})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("## %s  (%.1fs)\n", one, time.Since(began).Seconds())
		for _, e := range es {
			fmt.Printf("%-15s F %.4f ±%.4f lead %+.4f ±%.4f | W %.4f | age %7.3f older %+7.3f ±%.3f | cr %.3f vpc %6.2f lost %.3f v %.0f\n", e.Policy, e.Freshness.Mean, e.Freshness.Half, e.Lead.Mean, e.Lead.Half, e.Weighted.Mean, e.AgeDays.Mean, e.Older.Mean, e.Older.Half, e.ChangeRate.Mean, e.PerChange.Mean, e.Lost.Mean, e.Visits.Mean)
		}
	}
}
