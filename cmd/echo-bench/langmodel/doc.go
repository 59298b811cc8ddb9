// Package langmodel trains the weights of crawler/focus/lang and measures them.
//
// What it trains on: the texts of a directory (see Load), the message
// catalogues of the machine for the languages that are "other" (Catalogues),
// and sentences made of a hand-written list for informal Portuguese, of which no
// corpus with a licence was found (informal.txt, grammar). Sources whose licence
// is non-commercial or missing are never trained on (heldOut): they only test.
//
// How informal Portuguese from Portugal is reached without texts of it: both
// varieties learn from the same sources only (paired), so that no topic stands for a country;
// made sentences use the same verbs and nouns in both and differ in how they are said; and what
// was learnt is tested on real dialogue that was never trained on (--extra).
//
// How it measures: sources are dealt into folds; each fold's texts are judged by
// a model that saw no text of their sources, calibrated on the other folds. A
// person is drawn from one source where that has enough texts.
//
// What was tried for a person of ten texts and did not help beyond the noise of the draw (half
// a hundredth): frames of sentences (function words and endings, two to four in a row) in a table
// of 2^19 slots, and words that count more than n-grams besides. Frames took away a fifth of the
// errors in a model of the two varieties alone, not in the whole. Nor did, in that model, weights that
// shrink when few sources have the feature, sources drawn by the root of their size, three
// seeds averaged, a tighter cap on one text, or a feature counted less the second time. With the texts
// that only one variety has of a source (paired leaves them out) half as much again was wrong.
package langmodel
