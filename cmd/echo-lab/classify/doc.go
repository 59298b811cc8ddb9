// Package classify is Barbosa's dissertation of 2003 on refreshing a search engine
// with page classifiers, whole: the seven features of a page, groups of change rate
// by k-means, a decision tree, naive Bayes and nearest neighbours trained by the
// dissertation's protocol, and the two history classifiers.
//
// Classes are numbered from 0, the fastest. A class's period is the mean interval
// between changes, in days, which is 1 ÷ rate: the dissertation labels its groups
// "3, 30 and 96 days" from counts of unchanged visits, which is another unit.
//
// It is pure; models are safe for concurrent use once trained.
package classify
