// Package store keeps one peer's durable state in Pebble.
package store
