package hostile

// Weakness is something that a hostile replica of a slice can still do in that slice. A proof
// of decisions, signed by a majority of the replicas, would end most of them.
type Weakness struct {
	Name string
	What string // its consequence
}

// Weaknesses returns the known ones. TestWeaknesses shows each of them. It fails when one is
// fixed, so that it gets removed from this list.
func Weaknesses() []Weakness {
	return []Weakness{
		{"a replica makes up the next replica set", "Whoever keeps a slice is believed about the successor of its " +
			"replica set: one hostile replica can make itself the only one. The others keep their rows, and lose the slice."},
		{"a replica votes for two", "Of three replicas, two do not reach each other: the third helps each of them " +
			"to a majority of its own. Both act in the slice, until they meet."},
		{"an owner forgets links", "An owner acknowledges a link and does not write it down. The link is lost: the sender does not send it again."},
		{"an owner replaces records", "An owner brings any rows into its slice, in the name of any fetcher. " +
			"The other replicas take them, and the record that was there is gone."},
		{"a replica stops a slice while another is away", "Of three replicas, one is down and one leases nothing: the third " +
			"has no majority, and nobody acts in the slice until the one is back or is replaced."},
	}
}
