// Package strictjson reads JSON that other machines wrote and that this one writes again.
//
// The times that encoding/json takes are more than those that it gives: "T3:04:05Z", a zone of "-24:59", the year 9999
// in a zone where it is 10000 in UTC (go.dev/issue/54580). A row with one of these would be read, kept and merged, and
// make each answer and each export that it is part of an error.
package strictjson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"time"
)

// Unmarshal is json.Unmarshal, and an error for a time that cannot be written again as it is and in UTC. It may be
// called by many goroutines at once.
func Unmarshal(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return err //nolint:wrapcheck // it is that of encoding/json
	}
	if !zoned(b) {
		return nil
	}
	return check(reflect.ValueOf(v))
}

// zoned says whether b may hold a time in a zone of its own: in UTC, which our own rows are in, all that is read can be
// written. It looks for the end of a string that is like -24:59.
func zoned(b []byte) bool {
	for i := 6; i < len(b); i++ {
		if b[i] == '"' && b[i-3] == ':' && (b[i-6] == '+' || b[i-6] == '-') {
			return true
		}
	}
	return false
}

var timeType = reflect.TypeFor[time.Time]()

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

var known sync.Map // reflect.Type to whether values of it may hold a time

// holds says whether a value of type t may hold a time. A type within itself is taken to hold none beside what it
// holds.
func holds(t reflect.Type) bool {
	if is, ok := known.Load(t); ok {
		return is.(bool)
	}
	is := search(t, map[reflect.Type]bool{})
	known.Store(t, is)
	return is
}

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
