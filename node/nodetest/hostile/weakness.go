package hostile

// Weakness is something that a hostile keeper of a slice can still do in that slice. Proof
// of what was agreed, signed by a majority of the keepers, would end most of them.
type Weakness struct {
	Name string
	What string // what it comes to
}

// Weaknesses are those known. TestWeaknesses shows each of them, and fails when one is
// mended, so that it is taken off this list.
func Weaknesses() []Weakness {
	return []Weakness{
		{"a keeper makes up the next Config", "Whoever keeps a slice is believed about the successor of its Config: one hostile keeper can make itself the only one. The others keep their rows, and lose the slice."},
		{"a keeper votes for two", "Of three keepers, two do not reach each other: the third helps each of them " +
			"to a majority of its own. Both act in the slice, until they meet."},
		{"an owner forgets links", "An owner acknowledges a link and does not write it down. The link is lost: the sender does not send it again."},
		{"an owner replaces records", "An owner brings any rows into its slice, in the name of any fetcher. The other keepers take them, and the record that was there is gone."},
		{"a keeper stops a slice while another is away", "Of three keepers, one is down and one leases nothing: the third has no majority, and nobody acts in the slice until the one is back or is replaced."},
	}
}
