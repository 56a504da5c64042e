package layers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/heed-go/heed/internal/jsonkeys"
)

// kinds are the types that a field of interface type T may hold in JSON, each by a name: {"kind": name, …}, with the
// type's own fields beside it.
type kinds[T any] []kind[T]

type kind[T any] struct {
	name string
	is   func(v T) bool
	read func(data []byte) (T, error)
}

// kindOf returns the kind of values of type C, which must be a T.
func kindOf[C, T any](name string) kind[T] {
	return kind[T]{
		name: name,
		is:   func(v T) bool { _, ok := any(v).(C); return ok },
		read: func(data []byte) (T, error) {
			var c C
			err := decodeStrict(data, &c)
			return any(c).(T), err
		},
	}
}

// marshal returns a value as JSON. what names such values in errors.
func (ks kinds[T]) marshal(what string, v T) ([]byte, error) {
	for _, k := range ks {
		if !k.is(v) {
			continue
		}
		fields, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		head := fmt.Sprintf(`{"kind":%q`, k.name)
		if len(fields) == len("{}") {
			return []byte(head + "}"), nil
		}
		return append([]byte(head+","), fields[1:]...), nil
	}
	return nil, fmt.Errorf("%s of type %T can't go to JSON: only %s can, and not as pointers", what, v, ks.names())
}

// unmarshal returns the value that marshal wrote.
func (ks kinds[T]) unmarshal(what string, data []byte) (v T, err error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &fields); err != nil {
		return v, fmt.Errorf("%s: %w", what, err)
	}
	var name string
	if err := json.Unmarshal(fields["kind"], &name); err != nil {
		return v, fmt.Errorf("%s must have a kind, one of %s", what, ks.names())
	}
	delete(fields, "kind")
	for _, k := range ks {
		if k.name != name {
			continue
		}
		if data, err = json.Marshal(fields); err != nil {
			return v, err
		}
		if v, err = k.read(data); err != nil {
			return v, fmt.Errorf("%s of kind %s: %w", what, name, err)
		}
		return v, nil
	}
	return v, fmt.Errorf("there are no %s of kind %.100q: use %s", what, name, ks.names())
}

func (ks kinds[T]) names() string {
	names := make([]string, len(ks))
	for i, k := range ks {
		names[i] = k.name
	}
	return strings.Join(names, ", ")
}

// decodeStrict sets v to what JSON says. It is an error if v doesn't have a field, if a key comes twice or in another
// case, or if something follows the value.
func decodeStrict(data []byte, v any) error {
	if err := jsonkeys.Check(data, jsonkeys.Lower); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(v)
}
