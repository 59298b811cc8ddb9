// Package communitytest is a community with known truth, to try judges of package community on:
// people at home, people abroad, guests from the country that is taken for theirs,
// foreigners, machines, and profiles that say nothing. Everything is drawn from a
// seed; all texts are made by hand-written rules, none is anybody's.
//
// What is not in it cannot be measured by it: people here do not lie about
// themselves on purpose, and their texts are simpler than real ones.
package communitytest
