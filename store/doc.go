// Package store defines the types of one peer's durable state. These are the results of a fetch
// (Record, Capture, posts, lists, gaps), what to fetch (Admission, Due, Placement), the changes of
// one fetch (Commit), and their errors and limits. Package store/db opens a store. Package
// store/format describes the rows.
package store
