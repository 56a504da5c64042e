// Package must fails tests. It has the checks of errors and of texts that most tests need.
package must

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Get returns a function that returns v, or fails the test at once if err isn't nil: coder := must.Get(New(rule))(t).
func Get[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return v
	}
}

// Do fails the test at once if err isn't nil.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Fail fails the test unless err is an error whose text has all of the parts. Without an error, it ends the test.
func Fail(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got error %q, want one with %q", err, part)
		}
	}
}

// Refuse returns a function that is like Fail for a call with a result: must.Refuse(New(rule))(t, "no name").
func Refuse[T any](_ T, err error) func(t testing.TB, parts ...string) {
	return func(t testing.TB, parts ...string) {
		t.Helper()
		Fail(t, err, parts...)
	}
}

// Match is Do if want is empty, and otherwise Fail with it. It reports whether an error is wanted.
func Match(t testing.TB, err error, want string) bool {
	t.Helper()
	if want == "" {
		Do(t, err)
		return false
	}
	Fail(t, err, want)
	return true
}

// Keys returns the keys that v has as an object in JSON, sorted. It fails the test at once if v isn't one.
func Keys(t testing.TB, v any) []string {
	t.Helper()
	content := Get(json.Marshal(v))(t)
	var object map[string]any
	Do(t, json.Unmarshal(content, &object))
	return slices.Sorted(maps.Keys(object))
}

// Lack fails the test if the text has one of the parts.
func Lack(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("got\n%.3000s\nwant no %q in it", text, part)
		}
	}
}

// Have fails the test unless the text has all of the parts.
func Have(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("got\n%.3000s\nwant %q in it", text, part)
		}
	}
}
