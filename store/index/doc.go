// Package index is the full text of a store, in a bleve scorch index beside
// it. It is derived: delete its directory and it is made again from the
// records; the store is the only truth.
//
// # What is indexed
//
// Of the slices that are wanted, each record that is neither NoIndex nor Merged nor of a file,
// under its Key, and each post that is neither NoIndex nor deleted, under its Key
// and URI, so that an account is one document and each of its posts another: title and text (one field for
// matching, the title once more for its weight), slice, kind, language, site,
// the time (PublishedAt, else FetchedAt), what the judges found: place, the
// days that it speaks of, verdict; and the buckets in which it meets its copies. The text itself is not kept here:
// a hit's snippet is cut from the store's record, which is read for the few
// hits shown and is compressed already; keeping it would double the disk.
//
// Words are found by the Unicode rules (UAX 29; an apostrophe separates), then
// compatibility-normalised, cut into the parts by which people look for them (parts.go),
// folded to ASCII where Latin, and lower-cased: so lisboa finds Lisbôa, and org finds
// www.boost.org. There is no stemming: pages of many languages share one index, and one
// query language, and a stemmer of one ruins another's words.
//
// # Which slices
//
// Only what is asked for here: of a slice with several replicas the owner answers,
// and the text of it in every replica's index would cost more than all else that
// keeping does. Keep says which slices; Await brings others in for a while. A
// slice enters by a scan of its records; the changes that come meanwhile are
// followed beside it. Until that has ended it is named as missing, never
// searched in part (I8). A slice leaves at once as far as searches go, its
// documents batch by batch; after Linger, as it may come back.
//
// # The query language
//
//	word word      all words, in title or text, any order
//	"two words"    next to each other, in this order
//	-word -"a b"   without
//
// There is nothing else: no field names, no operators, no wildcards; other
// signs separate words. Notes says what of a query is not understood. A word that the
// rules above cut up (e-mail, 東京都) is looked for as a phrase. No query is malformed; one over MaxQueryBytes or
// MaxQueryTerms is an error. A query without a word to find (only filters, or
// only exclusions) finds all that pass, with score 0.
//
// # Scores
//
// BM25 (Robertson, Zaragoza: The Probabilistic Relevance Framework, 2009),
// k1 = 1.2, b = 0.75, over title and text together, plus titleWeight times the
// same over the title alone. Length is set against a fixed reference instead of
// the mean, so that all a score needs from the other peers are the number of
// documents and of those with each word: Stats. I8: with the merged Stats of
// all peers, a document has the same score on whichever peer it is, bit for
// bit, and merging sorted answers gives what one index of everything would.
// bleve's own global scoring is not used: it shares the number of documents and
// the mean length, but each index's own document frequencies (v2.6.0).
//
// # After a crash
//
// A batch of documents, the watermark (the last Change they contain), the slices
// that are whole and how far the scan has come are one write to the index, synced.
// What is above the watermark is indexed again, a scan goes on, and documents of
// slices that are neither whole nor being scanned are removed. A
// directory that does not open, or is another store's or another version's, is
// removed and made anew, with a line in the log.
package index
