// Package zonesim says what zones cost in a swarm larger than one machine can
// run: the ways of package dht, walked over Kademlia tables and zones of a given
// number of peers. It is pure and seeded: the same Options give the same Report.
//
// What is as in the program: zones split by partition.ZoneRule; a routing table
// has twenty peers for each length of common prefix, any that there are; a walk
// asks ten at a time, ends early as dht's does, and otherwise as Kademlia's (the
// three closest have answered, then the twenty closest are asked); two members
// have to name an owner; owners are remembered for five minutes, eight members
// of each zone for good. The numbers are those of package dht.
//
// What is simplified: an answer takes 20 to 200 ms and no message is lost, but
// for those to the share of peers that are dead and still in the tables; zones
// do not change during a run; a link goes to one of ten million domains, the
// r-th most linked with a weight of 1/r, which is how links on the web fall, by
// and large; the owner is any member of the slice's zone.
package zonesim
