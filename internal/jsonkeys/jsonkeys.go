// Package jsonkeys reads JSON strictly. It finds mistakes that encoding/json accepts: an object that repeats a key
// (encoding/json uses the last value), a key that differs from the field's name in case, bytes that aren't UTF-8, and
// halves of characters (encoding/json replaces both by U+FFFD).
package jsonkeys

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// mostKeys is the maximum number of keys of an object.
const mostKeys = 1 << 20

// Check returns an error if content isn't one JSON value in UTF-8, if a string has half of a character, if an object
// repeats a key or has more than 2^20 keys, or if allowed returns false for a key. If allowed is nil, all keys are
// allowed. The error names the key and its object. If content isn't JSON, the error wraps a *json.SyntaxError.
func Check(content []byte, allowed func(key string) bool) error {
	if !json.Valid(content) { // also checks the depth of nesting; unlike Unmarshal, it copies nothing
		return explained(content, json.Unmarshal(content, new(json.RawMessage)))
	}
	if !utf8.Valid(content) {
		return errors.New("JSON must be UTF-8, got other bytes")
	}
	c := checker{rest: content, allowed: allowed}
	return c.value()
}

// A reason is a mistake of a program that wrote JSON. It replaces the message of a *json.SyntaxError.
type reason struct {
	text string
	error
}

func (r reason) Error() string { return r.text }
func (r reason) Unwrap() error { return r.error }

// explained returns the error that content isn't JSON in words that say what to do, if it begins with a byte-order mark
// or has a number that JSON lacks.
func explained(content []byte, err error) error {
	if bytes.HasPrefix(content, []byte("\ufeff")) {
		return reason{"it begins with a byte-order mark, which JSON doesn't allow: save it as UTF-8 without one", err}
	}
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	rest := content[max(0, syntax.Offset-1):] // from the invalid byte on
	for _, name := range []string{"NaN", "Infinity"} {
		if bytes.HasPrefix(rest, []byte(name)) {
			return reason{fmt.Sprintf("it has the number %s, which JSON lacks: write a finite number or null", name), err}
		}
	}
	return err
}

// Members calls f for each member of an object, with the bytes of its value. It copies no value. It returns the first
// error of f. The argument content must be an object whose syntax is valid.
func Members(content []byte, f func(key string, value []byte) error) error {
	c := checker{rest: content}
	c.next()
	for c.rest = c.rest[1:]; c.next() != '}'; {
		key, err := unquote(c.text())
		if err != nil {
			return err
		}
		if err := f(key, c.skip()); err != nil {
			return err
		}
	}
	return nil
}

// Elements calls f for each element of an array, with its bytes. It copies no element. It returns the first error of f.
// The argument content must be an array whose syntax is valid.
func Elements(content []byte, f func(value []byte) error) error {
	c := checker{rest: content}
	c.next()
	for c.rest = c.rest[1:]; c.next() != ']'; {
		if err := f(c.skip()); err != nil {
			return err
		}
	}
	return nil
}

// Lower reports whether a key has only lower-case letters, digits and underscores, like the keys of config.json.
func Lower(key string) bool { return strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789_") == "" }

// A checker walks through JSON whose syntax is valid.
type checker struct {
	rest    []byte
	allowed func(key string) bool
	path    []string // keys of the enclosing objects
}

// next returns the first byte after white space, commas and colons, and leaves it in c.rest.
func (c *checker) next() byte {
	c.rest = bytes.TrimLeft(c.rest, " \t\r\n,:")
	return c.rest[0]
}

// value checks the next value.
func (c *checker) value() error {
	switch c.next() {
	case '{':
		return c.members()
	case '[':
		for c.rest = c.rest[1:]; c.next() != ']'; {
			if err := c.value(); err != nil {
				return err
			}
		}
		c.rest = c.rest[1:]
	case '"':
		if err := halfCharacter(c.text()); err != nil {
			return fmt.Errorf("a text in %.100q %w", strings.Join(c.path, "."), err)
		}
	default:
		c.word()
	}
	return nil
}

// skip returns the bytes of the next value.
func (c *checker) skip() []byte {
	c.next()
	start := c.rest
	for depth := 0; ; {
		switch c.next() {
		case '{', '[':
			c.rest, depth = c.rest[1:], depth+1
		case '}', ']':
			c.rest, depth = c.rest[1:], depth-1
		case '"':
			c.text()
		default:
			c.word()
		}
		if depth == 0 {
			return start[:len(start)-len(c.rest)]
		}
	}
}

// word skips a number, true, false or null.
func (c *checker) word() {
	end := bytes.IndexAny(c.rest, ",]} \t\r\n")
	if end < 0 {
		end = len(c.rest)
	}
	c.rest = c.rest[end:]
}

// Text returns the text of a JSON string. If the string has half of a character, the error continues a sentence about
// it.
func Text(quoted []byte) (string, error) {
	if err := halfCharacter(quoted); err != nil {
		return "", err
	}
	return unquote(quoted)
}

// unquote returns the text of a JSON string as encoding/json reads it.
func unquote(quoted []byte) (s string, err error) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1]), nil
	}
	err = json.Unmarshal(quoted, &s)
	return s, err
}

// halfCharacter returns an error if a JSON string has an escape for one half of a surrogate pair without the other
// half.
func halfCharacter(quoted []byte) error {
	unit := func(s []byte) rune { // the code of \uXXXX at the start of s
		if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
			return 0
		}
		code, _ := strconv.ParseUint(string(s[2:6]), 16, 16)
		return rune(code)
	}
	for i := bytes.IndexByte(quoted, '\\'); i >= 0 && i < len(quoted); i++ {
		if quoted[i] != '\\' {
			continue
		}
		if first := unit(quoted[i:]); utf16.IsSurrogate(first) {
			if utf16.DecodeRune(first, unit(quoted[i+6:])) == unicode.ReplacementChar {
				return errors.New(`has only half of a character, such as \ud800 without \udc00: write whole characters`)
			}
			i += 10
		}
		i++ // the escaped character
	}
	return nil
}

// text returns the next value, a string, as it is written.
func (c *checker) text() []byte {
	end := 1
	for ; c.rest[end] != '"'; end++ {
		if c.rest[end] == '\\' {
			end++
		}
	}
	text := c.rest[:end+1]
	c.rest = c.rest[end+1:]
	return text
}

// members checks the keys and values of an object.
func (c *checker) members() error {
	seen := map[string]struct{}{}
	for c.rest = c.rest[1:]; c.next() != '}'; {
		key, err := Text(c.text())
		if err != nil {
			return fmt.Errorf("a key %w", err)
		}
		_, twice := seen[key]
		switch {
		case len(seen) == mostKeys:
			return fmt.Errorf("an object may have %d keys at most", mostKeys)
		case twice:
			return fmt.Errorf("%s is given twice: leave one", c.name(key))
		case c.allowed != nil && !c.allowed(key):
			return fmt.Errorf("unknown key %s", c.name(key))
		}
		seen[key] = struct{}{}
		c.path = append(c.path, key)
		if err := c.value(); err != nil {
			return err
		}
		c.path = c.path[:len(c.path)-1]
	}
	c.rest = c.rest[1:]
	return nil
}

// name returns a key and the path of its object, for an error.
func (c *checker) name(key string) string {
	if len(c.path) == 0 {
		return fmt.Sprintf("%.100q", key)
	}
	return fmt.Sprintf("%.100q in %.100q", key, strings.Join(c.path, "."))
}
