// Package communitytest simulates a community with known truth, to test the judge of package
// community. It has people at home, people abroad, guests from the country that is mistaken for
// theirs, foreigners, machines, and empty profiles. Everything is random with a fixed seed. All
// texts are made by hand-written rules, none is a real person's.
//
// It cannot measure what it does not contain: people here do not lie about themselves on purpose,
// and their texts are simpler than real ones.
package communitytest
