// Package zonesim measures the cost of zones in a swarm that is too large for one machine. It
// runs the searches of package dht over the Kademlia tables and zones of a given number of
// peers. It is pure and seeded: the same Options give the same Report.
//
// As in the program: zones split by partition.ZoneRule. A routing table has twenty peers for
// each length of common prefix, if there are that many. A walk asks ten peers at a time and
// ends early like that of dht. Otherwise it ends like Kademlia's: the three closest have
// responded, then the twenty closest are asked. Two members must name an owner. Owners are
// remembered for five minutes, and eight members of each zone for ever. The numbers are those
// of package dht.
//
// Simplified: a response takes 20 to 200 ms. No message is lost, except those to dead peers
// that are still in the tables. Zones do not change during a run. A link goes to one of ten
// million domains; the r-th most linked domain has a weight of 1/r. That is roughly how links
// on the web are distributed. The owner is any member of the slice's zone.
package zonesim
