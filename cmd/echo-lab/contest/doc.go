// Package contest replays histories of change against revisit policies at equal budget and
// equal start. It measures what users notice: freshness, age and missed changes. It also
// reports the change rate, which is misleading alone.
//
// A [World] is what really happens: items and the times at which they change, replayed from a
// file or drawn from a population. [Run] runs one policy in one world. [Hold] runs a whole
// contest over seeds and returns means with 95 % intervals.
//
// Every policy gets the same visits at the same times. The visits are slots evenly spread over
// the run, and a policy only chooses the item for each slot: the one due first. Each item has a
// phase, drawn with the seed, that shortens its first wait under every policy. All policies
// start with a good copy of every item known at the start. An item born later is found at its
// birth, free of charge, for every policy alike. Policies named oracle-* know the truth and
// show the limit.
//
// The package is deterministic in its seed and reads no file and no clock.
package contest
