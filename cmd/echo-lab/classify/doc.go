// Package classify implements Barbosa's dissertation of 2003 on refreshing a search engine with
// page classifiers completely. It has the seven features of a page, and groups of change rate
// by k-means. It has a decision tree, naive Bayes and nearest neighbours, trained by the
// dissertation's protocol, and the two history classifiers.
//
// Classes are numbered from 0, the fastest. A class's period is the mean interval between
// changes, in days, which is 1 ÷ rate. The dissertation labels its groups "3, 30 and 96 days"
// from counts of unchanged visits, which is another unit.
//
// The package is pure. Models are safe for concurrent use once trained.
package classify
