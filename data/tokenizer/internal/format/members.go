package format

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/heed-go/heed/internal/jsonkeys"
)

// Members has the values of a JSON object by key.
type Members map[string]json.RawMessage

// Object returns the members of a JSON object. jsonkeys.Check must have accepted the content. Object copies no value.
// If keys are given, any other key is an error.
func Object(content []byte, keys ...string) (Members, error) {
	content = bytes.TrimLeft(content, " \t\r\n")
	if len(content) == 0 || content[0] != '{' {
		return nil, fmt.Errorf("expected an object, got %.200s", cmp.Or(string(content), "nothing"))
	}
	m := Members{}
	err := jsonkeys.Members(content, func(key string, value []byte) error {
		if len(keys) > 0 && !slices.Contains(keys, key) {
			return fmt.Errorf("%.100q isn't supported", key)
		}
		m[key] = value
		return nil
	})
	return m, err
}

// Decode decodes the members into the fields of a struct. A key without a field is an error.
func (m Members) Decode(into any) error {
	const size = 2 << 20
	total := 0
	for _, value := range m {
		if total += len(value); total > size {
			return fmt.Errorf("without its lists, it must have at most %d bytes", size)
		}
	}
	content, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return Decode(content, into)
}

// Take removes the value of a key and returns it. The value must be an object if first is '{', or an array if it is
// '['.
func (m Members) Take(key string, first byte) (json.RawMessage, error) {
	value := m[key]
	delete(m, key)
	if len(value) > 0 && value[0] == first {
		return value, nil
	}
	name, got := map[byte]string{'{': "object", '[': "array"}[first], string(value)
	return nil, fmt.Errorf("its %s must be an %s, got %.100s", key, name, cmp.Or(got, "nothing"))
}

// IsOneOf returns an error unless the value of key is in values. A missing value is null.
func (m Members) IsOneOf(key string, values ...any) error {
	value := m[key]
	if value == nil {
		value = json.RawMessage("null")
	}
	const size = 1 << 12 // the values are shorter
	var got any
	if len(value) <= size {
		if err := json.Unmarshal(value, &got); err != nil {
			return err
		}
	}
	if len(value) <= size && slices.ContainsFunc(values, func(want any) bool { return reflect.DeepEqual(got, want) }) {
		return nil
	}
	var wants []string
	for _, want := range values {
		text, err := json.Marshal(want)
		if err != nil {
			return err
		}
		wants = append(wants, string(text))
	}
	return fmt.Errorf("its %s must be %s, got %.200s", key, strings.Join(wants, " or "), value)
}

// TakeVocab removes the key "vocab", an object with the id of each token. It returns the tokens by their ids; a string
// is empty if no token has its id.
func (m Members) TakeVocab() ([]string, error) {
	object, err := m.Take("vocab", '{')
	if err != nil {
		return nil, err
	}
	n, limit := 0, min(bytes.Count(object, []byte(":")), MaxEntries) // number of tokens so far, and its limit
	tokens := make([]string, 0, limit)
	err = jsonkeys.Members(object, func(token string, value []byte) error {
		id, err := strconv.ParseInt(string(value), 10, 32)
		switch n++; {
		case err != nil || id < 0:
			return fmt.Errorf("its vocab must give each token an id from 0 on, got %.100s for %.100q", value, token)
		case n > limit:
			return fmt.Errorf("its vocab must have at most %d tokens", MaxEntries)
		case int(id) >= MaxIDs(limit):
			return fmt.Errorf("ids of a vocab with up to %d tokens must be below %d, got %d for %.100q", limit, MaxIDs(limit), id, token)
		case int(id) < len(tokens) && tokens[id] != "":
			return fmt.Errorf("its vocab gives the id %d to %.100q and to %.100q", id, tokens[id], token)
		case int(id) >= len(tokens):
			tokens = append(tokens, make([]string, int(id)+1-len(tokens))...)
		}
		tokens[id] = token
		return nil
	})
	return tokens, err
}

// Decode is like json.Unmarshal, but its error doesn't mention Go types, and a key without a field is an error.
func Decode(value []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return WrongType(wrong)
	}
	if err != nil {
		if key, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return fmt.Errorf("%.100s isn't supported", key)
		}
	}
	return err
}

// WrongType returns a shorter error for a value of the wrong type. A number may have as many digits as a file. The name
// of an embedded struct, which isn't in the file, is left out.
func WrongType(wrong *json.UnmarshalTypeError) error {
	field := strings.TrimPrefix(wrong.Field, "metaspaceJSON.")
	if field == "" {
		return fmt.Errorf("it has the wrong type, %.100s", wrong.Value)
	}
	return fmt.Errorf("its %.100s has the wrong type, %.100s", field, wrong.Value)
}
