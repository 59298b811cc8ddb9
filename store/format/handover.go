package format

// Handed returns the tables that move with a slice, in the order in which they are sent. Key states
// come first, because a record without one is marked as due again. The due index, the counts and
// the change log belong to each peer and are rebuilt.
func Handed() []Table {
	return append([]Table{TabKey, TabSite, TabRecord, TabQueued, TabUnit, TabCapture}, ItemTables()...)
}

// TableRank returns the position of t in Handed.
func TableRank(t Table) int {
	for i, h := range Handed() {
		if h == t {
			return i
		}
	}
	return len(Handed())
}
