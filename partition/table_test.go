package partition

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func drawMembers(t *rapid.T) []Member {
	var ms []Member
	for range rapid.IntRange(0, 12).Draw(t, "members") {
		m := Member{ID: fmt.Sprint("peer", rapid.IntRange(0, 15).Draw(t, "id")),
			Capacity: rapid.IntRange(-1, 18).Draw(t, "capacity"), LoadStep: rapid.IntRange(-1, 18).Draw(t, "step")}
		if rapid.Bool().Draw(t, "located") {
			m.Location = &Point{rapid.Float64Range(-91, 91).Draw(t, "lat"), rapid.Float64Range(-181, 181).Draw(t, "lon")}
		}
		ms = append(ms, m)
	}
	return ms
}

// mixedSlices are some slices of both kinds.
func mixedSlices() []Slice {
	all := Charter{SliceBits: 6}.Slices()
	for f := range uint64(6) {
		for q := range uint64(16) {
			all = append(all, Slice(f<<61|q<<57|1<<56))
		}
	}
	return all
}

func keepersOf(t *Table) map[Slice][]string {
	out := map[Slice][]string{}
	for _, s := range t.Slices() {
		out[s] = t.Keepers(s)
	}
	return out
}

// Whatever the path of updates, a Table is the one made from scratch, and what
// Update reports as changed is what changed.
func TestTableIncremental(t *testing.T) {
	all := mixedSlices()
	rapid.Check(t, func(t *rapid.T) {
		table := NewTableOf(all, rapid.IntRange(1, 7).Draw(t, "replicas"))
		for range rapid.IntRange(1, 6).Draw(t, "updates") {
			before := keepersOf(table)
			v := NewView(drawMembers(t))
			changed := table.Update(v)
			fresh := NewTableOf(all, table.replicas)
			fresh.Update(v)
			for _, s := range all {
				if got, want := table.Keepers(s), fresh.Keepers(s); !slices.Equal(got, want) {
					t.Fatalf("keepers of %v: %v, from scratch %v", s, got, want)
				}
				if slices.Contains(changed, s) == slices.Equal(before[s], table.Keepers(s)) {
					t.Fatalf("%v: before %v, now %v, reported %v", s, before[s], table.Keepers(s), slices.Contains(changed, s))
				}
			}
		}
	})
}
