package format

// Handed are the tables that move with a slice, in the order they are sent:
// key states first, as a record without one is put down as due again. The due
// index, counts and change log are each peer's own and are made anew.
func Handed() []Table {
	return append([]Table{TabKey, TabSite, TabRecord, TabQueued, TabUnit, TabCapture}, ItemTables()...)
}

func TableRank(t Table) int {
	for i, h := range Handed() {
		if h == t {
			return i
		}
	}
	return len(Handed())
}
