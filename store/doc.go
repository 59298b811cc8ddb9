// Package store has the words of one peer's durable state: what a fetch produced (Record,
// Capture, posts, lists, gaps), what is to be fetched (Admission, Due, Placement), what one
// fetch changes (Commit), and the errors and caps of all that. Package store/db opens a store,
// and store/format says how each is kept.
package store
