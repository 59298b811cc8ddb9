// Package warc writes records as WARC 1.1 (ISO 28500:2017). Each WARC record is a gzip member of
// its own. So a file can be cut and continued between any two records, and readers may start at any
// record.
//
// The output is deterministic: the same input gives the same bytes, including the record ids. So an
// export that was cut off and continued is the same file as one without a break. The caller decides
// what is written, and in which order.
package warc
