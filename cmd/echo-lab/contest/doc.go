// Package contest replays histories of change against revisit policies at equal
// budget and equal start, and measures what users feel: freshness, age, what was
// missed; beside them the change rate, which alone misleads.
//
// A [World] is what truly happens: items and the times they change, replayed from
// a file or drawn from a population. [Run] lets one policy loose on one world; [Hold]
// holds a whole contest over seeds and gives means with 95 % intervals.
//
// Every policy gets the same visits at the same times: the visits are slots evenly
// spread over the run, and a policy only chooses which item each slot goes to, the
// one due earliest. Each item has a phase, drawn with the seed, that cuts its first wait under every
// policy. All start with a good copy of every item known at the start;
// an item born later is met at its birth, free of charge, for every policy alike.
// Policies named oracle-* are told the truth and show the limit.
//
// The package is deterministic in its seed and reads no file and no clock.
package contest
