// Package index is the full-text index of a store, in a bleve scorch index beside it. The index is
// derived data: if its directory is deleted, it is rebuilt from the records. The store is the only
// truth.
//
// # What is indexed
//
// For the wanted slices, each record is a document under its Key, unless it is NoIndex, Merged or
// of a file. Each post that is neither NoIndex nor deleted is a document under its Key and URI. So
// an account is one document, and each of its posts is another. A document has title and text (one
// field for matching, and the title again for its weight), slice, kind, language, site and time
// (PublishedAt, else FetchedAt). It also has what the judges found: the place, the days that the
// text is about, and the verdict. Last, it has the buckets in which it meets its copies.
//
// The text itself is not stored here. A hit's snippet is cut from the store's record, which is read
// for the few hits shown and is already compressed. Storing the text twice would double the disk
// use.
//
// The index splits text into words by the Unicode rules (UAX 29; an apostrophe separates). Words
// are compatibility-normalised and cut into the parts that people search for (words/parts.go).
// Latin letters are folded to ASCII, and all are lower-cased. So lisboa finds Lisbôa, and org finds
// www.boost.org. There is no stemming: pages of many languages share one index and one query
// language, and a stemmer for one language damages the words of another.
//
// # Which slices
//
// Only the slices whose queries this peer answers. The owner answers for a slice with several
// replicas, and its text in every replica's index would cost more than all other work of a replica.
// Keep sets the slices; Await adds others for some time. A slice enters by a scan of its records,
// while changes to it are followed at the same time. Until the scan ends, the slice is reported as
// missing and never searched in part (I8). A slice that is no longer kept stays for Linger, because
// it may come back. Then it is no longer searched, and its documents are deleted in batches.
//
// # The query language
//
//	word word      all words, in title or text, any order
//	"two words"    next to each other, in this order
//	-word -"a b"   without
//
// There is nothing else: no field names, no operators, no wildcards; other signs separate words.
// Notes reports which parts of a query are not understood. A word that the rules above cut up
// (e-mail, 東京都) is searched as a phrase. No query is malformed, but one over MaxQueryBytes or
// MaxQueryTerms is an error. A query without a word to find (only filters, or only exclusions)
// finds all documents that pass, with score 0.
//
// # Scores
//
// BM25 (Robertson, Zaragoza: The Probabilistic Relevance Framework, 2009), k1 = 1.2, b = 0.75, over
// title and text together, plus titleWeight times the same over the title alone. A text's length is
// compared with a fixed reference instead of the mean. So a score needs only two numbers from the
// other peers, in Stats: the number of documents, and the number of documents with each word. I8:
// with the merged Stats of all peers, a document has the same score, bit for bit, on every peer.
// Merging the sorted answers gives the same result as one index of everything. bleve's own global
// scoring is not used: it shares the number of documents and the mean length, but each index uses
// its own document frequencies (v2.6.0).
//
// # After a crash
//
// One synced write to the index contains a batch of documents, the watermark (the last Change they
// contain), the slices that are whole, and how far the scan has come. After a crash, changes above
// the watermark are indexed again and a scan continues. Documents of slices that are neither whole
// nor being scanned are removed. A directory that does not open, or that belongs to another store
// or version, is removed and rebuilt, with a line in the log.
package index
