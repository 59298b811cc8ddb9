// Package strictjson reads JSON that other machines wrote and that this machine writes again.
//
// encoding/json accepts more times than it can write (go.dev/issue/54580). Examples are
// "T3:04:05Z", a zone of "-24:59", or the year 9999 in a zone where it is 10000 in UTC. Without a
// check, a row with such a time would be read, kept and merged. Every response and export that
// contains the row would then fail.
package strictjson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"time"
)

// Unmarshal is json.Unmarshal, but returns an error for a time that cannot be written again,
// unchanged or in UTC. It is safe for concurrent use.
func Unmarshal(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return err //nolint:wrapcheck // the error of encoding/json itself
	}
	if !zoned(b) {
		return nil
	}
	return check(reflect.ValueOf(v))
}

// zoned reports whether b may hold a time in a zone other than UTC. Every time in UTC that can
// be read can be written, and our own rows are in UTC. zoned looks for a string that ends like
// -24:59.
func zoned(b []byte) bool {
	for i := 6; i < len(b); i++ {
		if b[i] == '"' && b[i-3] == ':' && (b[i-6] == '+' || b[i-6] == '-') {
			return true
		}
	}
	return false
}

var timeType = reflect.TypeFor[time.Time]()

// check returns an error if v contains a time, at any depth, that cannot be written.
func check(v reflect.Value) error {
	if !holds(v.Type()) {
		return nil
	}
	if v.Type() == timeType {
		t := v.Interface().(time.Time)
		_, err := t.MarshalJSON()
		if err == nil {
			_, err = t.UTC().MarshalJSON()
		}
		if err != nil {
			return fmt.Errorf("a time that cannot be written: %w", err)
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return check(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				if err := check(v.Field(i)); err != nil {
					return err
				}
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := check(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if err := check(it.Value()); err != nil {
				return err
			}
		}
	}
	return nil
}

var known sync.Map // reflect.Type to whether its values may hold a time

// holds reports whether a value of type t may hold a time. When a type contains itself, the
// inner occurrence is ignored.
func holds(t reflect.Type) bool {
	if is, ok := known.Load(t); ok {
		return is.(bool)
	}
	is := search(t, map[reflect.Type]bool{})
	known.Store(t, is)
	return is
}

// search is holds without the cache. seen has the types that are being searched.
func search(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == timeType || t.Kind() == reflect.Interface {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return search(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if search(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}
