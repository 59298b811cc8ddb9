// Package duplicates says which short texts are copies of which.
//
// It begins with the method of Xu, Sha, Li, Shan and Wang, "Duplicate messages
// in Twitter" (Computer Engineering and Applications 50(21), 2014):
//
//  1. Official: a text that ends in "Retweeted by NAME" is its content (Official);
//     equal contents are copies.
//  2. Marks: the marks of unofficial reposts (RT @u:, via @u, //@u:, @u ...) are
//     removed, every occurrence, to a fixpoint (Strip; RulesVersion).
//  3. Features: the set of the words, each of weight 1 (Tokens).
//  4. Fingerprint: 64-bit simhash over CityHash64 (Simhash).
//  5. Decision: a Hamming distance of at most 3 bits, by an exact index (Near).
//
// On short texts step 5 finds little more than equal word sets: of one-word
// edits of a 15-word text 9 % are within 3 bits ("echo-lab duplicates" measures
// it by kind of edit). So beyond the paper, unless
// Options.Paper is set:
//
//   - Candidates also come from bands of a min-hash, which meet for nearly every
//     pair that shares three quarters of its features (Buckets).
//   - Every candidate is verified word by word (Compare): a text may differ by a
//     few words in proportion to its length, or by a comment of up to three words at one end. It may
//     not differ by a negation, nor swap one number or one name for another.
//   - Texts of fewer than Options.MinTokens features match only exactly, texts
//     that consist of marks only match nothing.
//   - Width, compatibility forms (NFKC) and case are folded, URLs are no features,
//     and Chinese, Japanese and Korean text is cut into pairs of characters, so
//     that no dictionary has to be shipped or pinned.
//
// # Groups
//
// A group is a representative and the texts that were each compared with it and
// found to be its copies: the earliest text (by time, then the shorter id, then id) stands for
// a group; each later one joins the nearest representative before it or becomes
// one. So a chain A-B-C with A unlike C never puts C in A's group, and the result
// does not depend on the order of input (Join).
//
// # In a swarm
//
// Buckets names the buckets in which a text can meet its copies. Who has some of
// all texts keeps the buckets of each beside it, and finds with them what Meets with a
// text that somebody else has; a Circle asks all of them, step by step, for what
// copies connect with one text, and its groups are those that one peer would have
// found over all texts. This is what a peer of this program does (package node).
//
// A bucket could as well have an owner of its own, by Bucket.Slot, as a Key has: it
// compares a newcomer with what the bucket holds (Match, or Pairs for many) and
// keeps the pairs; Join makes groups of pairs from any number of owners.
//
// A Print is all a bucket needs: no text leaves the peer that crawled it.
// CityHash is not cryptographic: who wants to can make two texts collide.
//
// Everything here is pure and, but for Grouper and Circle, safe for concurrent use.
package duplicates
