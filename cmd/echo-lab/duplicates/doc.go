// Package duplicates measures how well package duplicates finds copies of short texts, and how
// rarely it finds other texts. It compares this with the method of Xu, Sha, Li, Shan and Wang,
// "Duplicate messages in Twitter" (Computer Engineering and Applications 50(21), 2014).
//
// The paper used tweets that are lost, and printed no figures by kind of edit. It says that a
// distance of 3 bits is best, and what share of the tweets were copies. So [Measure] plants
// copies of known kinds, and both methods must find them: that of the paper
// (copies.Options.Paper) and that of echo-node. Real sentences, if there are any, get planted
// edits too ([Sentences]).
package duplicates
