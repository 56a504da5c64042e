package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/internal/textfile"
)

// jsonRows reads JSONL. A row is a line with an object. Its fields are the values of the wanted keys, and then the
// whole line.
type jsonRows struct {
	in     objectLines
	known  []Column
	keys   []string // wanted keys; empty strings until the first object decides
	fields []string
	spans  *spanReader // nil if the rows can't have spans
}

// newJSONRows returns a reader of the wanted keys of each line.
func newJSONRows(lines objectLines, o Options) (*jsonRows, error) {
	for _, name := range o.Columns {
		if _, err := strconv.Atoi(name); err == nil {
			return nil, setting.Errorf("%s must be keys, because the keys of JSONL have no order, got the number %s", columnsPath, name)
		}
	}
	keys := make([]string, max(len(o.Columns), len(o.Known)))
	copy(keys, o.Columns)
	rows := &jsonRows{in: lines, known: o.Known, keys: keys}
	if o.Tagged && len(keys) == 2 {
		rows.spans = &spanReader{columns: o.Columns}
	}
	return rows, nil
}

// names returns the wanted keys, in a slice that is complete after the first object.
func (j *jsonRows) names() []string { return j.keys }

func (j *jsonRows) members(line []byte) (object, error) {
	if j.spans != nil {
		return j.spans.members(line)
	}
	return members(line)
}

func (j *jsonRows) next() (row, error) {
	var line []byte
	for len(bytes.TrimSpace(line)) == 0 {
		var err error
		if line, err = j.in.next(); err != nil {
			return row{}, err
		}
	}
	object, err := j.members(line)
	if j.keys[0] == "" && err == nil {
		if err := object.known(j.in.line(), j.known, j.keys); err != nil {
			return row{}, err
		}
	}
	j.fields = j.fields[:0]
	for i, key := range j.keys {
		field, c := "", Column{}
		if i < len(j.known) {
			c = j.known[i]
		}
		if err == nil {
			field, err = object.text(key, c)
		}
		if errors.Is(err, ErrSeveral) {
			return row{}, fmt.Errorf("line %d: %w", j.in.line(), err)
		}
		j.fields = append(j.fields, field)
	}
	j.fields = append(j.fields, string(line))
	if err != nil {
		return row{}, &RowError{Line: j.in.line(), Fields: j.fields, Err: err, rows: 1}
	}
	return row{j.fields, j.in.line()}, nil
}

// An object has the members of a JSON object in their order.
type object []member

type member struct {
	key   string
	value []byte
}

// members returns the members of the object in a line.
func members(line []byte) (object, error) {
	if !json.Valid(line) { // checks all syntax and the depth of nesting
		return nil, fmt.Errorf("not JSON: %w; each line must be one object", json.Unmarshal(line, new(any)))
	}
	if line = bytes.TrimLeft(line, jsonSpace); line[0] != '{' {
		return nil, fmt.Errorf("not a JSON object: %.50q", line)
	}
	var o object
	err := jsonkeys.Members(line, func(key string, value []byte) error {
		o = append(o, member{key, value})
		return nil
	})
	return o, err
}

// known sets keys to the likeliest known name of each column that is a key of the object.
func (o object) known(line int, columns []Column, keys []string) error {
	for i, c := range columns {
		for _, name := range slices.Backward(c.Names) {
			if m := slices.IndexFunc(o, func(m member) bool { return sameName(m.key, name) }); m >= 0 {
				keys[i] = o[m].key
			}
		}
		if keys[i] == "" {
			return setting.Errorf("line %d has %s, and none of them is %s: set %s to the keys of %s", line, o.keys(), strings.Join(c.Names, ", "), columnsPath, roles(columns))
		}
	}
	return nil
}

// names returns the keys. Members of an object that is a value have two keys with a dot between.
func (o object) names() (names []string) {
	for _, m := range o {
		inner := m.object()
		for _, x := range inner {
			names = append(names, m.key+"."+x.key)
		}
		if len(inner) == 0 {
			names = append(names, m.key)
		}
	}
	return names
}

// object returns the members of a value that is an object, and nil for other values.
func (m member) object() object {
	if m.value == nil || m.value[0] != '{' {
		return nil
	}
	o, _ := members(m.value) // it is valid, as the line is
	return o
}

// keys lists the keys for errors.
func (o object) keys() string {
	names := o.names()
	if len(names) == 0 {
		return "no keys"
	}
	return "the keys " + text.List(len(names), 20, ", ", func(i int) string { return fmt.Sprintf("%.30q", names[i]) })
}

// text returns the value of a key, such as target or translation.de, as text: a string, the JSON text of a number or a
// boolean, or an array of these, joined as the column says. The text of null is empty.
func (o object) text(key string, c Column) (string, error) {
	m, err := o.lookup(key)
	if err != nil {
		return "", err
	}
	if m.value == nil {
		outer, rest, _ := strings.Cut(key, ".")
		within, err := o.lookup(outer)
		if err != nil {
			return "", err
		}
		inner := within.object()
		if inner == nil {
			return "", fmt.Errorf("the key %q is missing: the line has %s%s", key, o.keys(), text.DidYouMean(key, o.names()))
		}
		text, err := inner.text(rest, c)
		if err != nil {
			err = fmt.Errorf("in %q, %w", outer, err)
		}
		return text, err
	}
	text, err := valueText(m.value, c)
	if err != nil {
		return "", fmt.Errorf("the value of %q %w", key, err)
	}
	return text, nil
}

// lookup returns the member with a key, or else the one whose key differs only in case or spaces around it. If there is
// none, its value is nil. It returns an error if there are two.
func (o object) lookup(key string) (member, error) {
	same := func(m member) bool { return m.key == key }
	i := slices.IndexFunc(o, same)
	if i < 0 {
		same = func(m member) bool { return sameName(m.key, key) }
		i = slices.IndexFunc(o, same)
	}
	if i < 0 {
		return member{}, nil
	}
	if slices.ContainsFunc(o[i+1:], same) {
		return member{}, fmt.Errorf("the key %q is in the line twice", key)
	}
	return o[i], nil
}

// valueText returns a value as text. An error continues a sentence about the value.
func valueText(value []byte, c Column) (string, error) {
	if value[0] == 'n' && c.Several != "" {
		return "", errors.New("is null: a row without labels has an empty array")
	}
	if c.Raw && (value[0] == '[' || value[0] == '{') {
		return string(value), nil
	}
	if value[0] != '[' {
		return scalarText(value)
	}
	labels, elements, want := c.One || c.Several != "", "the tokens of the text", "must not be empty and must not have white space"
	if labels {
		elements, want = "labels", "must not be empty"
	}
	var texts []string
	err := jsonkeys.Elements(value, func(element []byte) error {
		text, err := scalarText(element)
		if err == nil && (text == "" || !labels && strings.ContainsFunc(text, unicode.IsSpace)) {
			err = fmt.Errorf("%s: %.50q", want, text)
		}
		texts = append(texts, text)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("is an array, whose elements are %s; an element %w", elements, err)
	}
	joined, err := c.join(texts)
	if err != nil {
		err = fmt.Errorf("is an array of %w", err)
	}
	return joined, err
}

func scalarText(value []byte) (string, error) {
	switch value[0] {
	case '{', '[':
		return "", errors.New("is an object or an array; only strings, numbers and booleans can be read as text")
	case 'n': // null
		return "", nil
	case '"':
		if err := textfile.CheckUTF8(string(value[1:])); err != nil {
			return "", fmt.Errorf("is %w", err)
		}
		return jsonkeys.Text(value)
	}
	return string(value), nil
}

// jsonSpace has the white space of JSON.
const jsonSpace = " \t\r\n"
