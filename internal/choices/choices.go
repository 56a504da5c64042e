// Package choices has tables of named choices for configurations, flags and errors. A choice is a value, or a struct
// type that implements an interface and can be saved as JSON.
package choices

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/text"
)

// A Table lists choices. The default, if there is one, comes first.
type Table[V any] []Entry[V]

// An Entry is a choice: its name, a line of help and its value.
type Entry[V any] struct {
	Name, About string
	Value       V
}

// A Choice is a table that a flag chooses from.
type Choice struct {
	All   iter.Seq2[string, string]            // name and help of each choice
	Parse func(text string) (v any, err error) // value that a name and, after commas, fields describe: "rotary,base=10000"
	Text  func(v any) string                   // text that Parse turns into v; "" if nothing is chosen
}

// All yields the name and the help of each choice, in the table's order.
func (t Table[V]) All() iter.Seq2[string, string] {
	return func(yield func(name, about string) bool) {
		for _, e := range t {
			if !yield(e.Name, e.About) {
				return
			}
		}
	}
}

// Get returns the value of the choice with this name, and whether the table has such a choice.
func (t Table[V]) Get(name string) (v V, ok bool) {
	i := slices.IndexFunc(t, func(e Entry[V]) bool { return e.Name == name })
	if i < 0 {
		return v, false
	}
	return t[i].Value, true
}

// Index returns the number of the choice with this name. It returns an error if there is none; kind says what the table
// lists, such as "activation".
func (t Table[V]) Index(kind, name string) (int, error) {
	i := slices.Index(t.Names(), name)
	if i < 0 {
		return 0, fmt.Errorf("there is no %s %.100q: use one of %s%s", kind, name, t, text.DidYouMean(name, t.Names()))
	}
	return i, nil
}

// Names returns the name of each choice.
func (t Table[V]) Names() []string {
	names := make([]string, len(t))
	for i, e := range t {
		names[i] = e.Name
	}
	return names
}

// String returns the names, separated by commas.
func (t Table[V]) String() string { return strings.Join(t.Names(), ", ") }

// Numbers are the choices of an integer type N: its values are the numbers of a table's entries, from 0.
type Numbers[N ~int] struct {
	kind  string // of choice for errors, such as "activation"
	names Table[struct{}]
}

// NumbersOf returns the Numbers of a table.
func NumbersOf[N ~int, V any](kind string, t Table[V]) Numbers[N] {
	ns := Numbers[N]{kind: kind}
	for name, about := range t.All() {
		ns.names = append(ns.names, Entry[struct{}]{Name: name, About: about})
	}
	return ns
}

// Name returns the name of choice n, or kind and number if there is no such choice.
func (ns Numbers[N]) Name(n N) string {
	if ns.Check(n) != nil {
		return fmt.Sprintf("%s %d", ns.kind, int(n))
	}
	return ns.names[n].Name
}

// Check returns an error if there is no choice n.
func (ns Numbers[N]) Check(n N) error {
	if n < 0 || int(n) >= len(ns.names) {
		return fmt.Errorf("there is no %s %d: use one of %s", ns.kind, int(n), ns.names)
	}
	return nil
}

// Set sets n to the choice with this name. It returns an error if there is none.
func (ns Numbers[N]) Set(n *N, name string) error {
	i, err := ns.names.Index(ns.kind, name)
	if err == nil {
		*n = N(i)
	}
	return err
}

// Choice returns the numbers as a Choice for a flag.
func (ns Numbers[N]) Choice() Choice {
	return Choice{
		All: ns.names.All(),
		Parse: func(text string) (any, error) {
			var n N
			err := ns.Set(&n, text)
			return n, err
		},
		Text: func(v any) string { return ns.Name(v.(N)) },
	}
}

// Types are the named types that a field of interface type T may hold.
type Types[T any] struct {
	What string // plural for errors, such as "positions"
	Table[Type[T]]
}

// A Type is one of the types that a T may hold.
type Type[T any] struct {
	holds func(v T) bool
	made  func(set func(c any) error) (T, error) // a new value, after set has set it through a pointer
}

// TypeOf returns the entry for type C, a struct that must implement T.
func TypeOf[C, T any](name, about string) Entry[Type[T]] {
	return Entry[Type[T]]{name, about, Type[T]{
		holds: func(v T) bool { _, ok := any(v).(C); return ok },
		made: func(set func(c any) error) (T, error) {
			var c C
			err := set(&c)
			return any(c).(T), err
		},
	}}
}

// Marshal returns a value as JSON: {"kind": name, …} with the fields of its type. It returns an error if the type isn't
// in the table.
func (ts Types[T]) Marshal(v T) ([]byte, error) {
	for _, e := range ts.Table {
		if !e.Value.holds(v) {
			continue
		}
		fields, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		head := fmt.Sprintf(`{"kind":%q`, e.Name)
		if len(fields) == len("{}") {
			return []byte(head + "}"), nil
		}
		return append([]byte(head+","), fields[1:]...), nil
	}
	return nil, fmt.Errorf("%s of type %T can't go to JSON: only %s can, and not as pointers", ts.What, v, ts)
}

// Unmarshal returns the value that Marshal wrote. It returns an error if the kind or a field is unknown.
func (ts Types[T]) Unmarshal(data []byte) (v T, err error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &fields); err != nil {
		return v, fmt.Errorf("%s: %w", ts.What, err)
	}
	var name string
	if err := json.Unmarshal(fields["kind"], &name); err != nil {
		return v, fmt.Errorf("%s must have a kind, one of %s", ts.What, ts)
	}
	delete(fields, "kind")
	if data, err = json.Marshal(fields); err != nil {
		return v, err
	}
	return ts.made(name, func(c any) error { return Decode(data, c) })
}

// Parse returns the value that a text such as "rotary,base=10000" describes: the name of a kind, then fields as in Set.
// It returns an error if the kind or a field is unknown.
func (ts Types[T]) Parse(text string) (v T, err error) {
	name, _, _ := strings.Cut(text, ",")
	return ts.made(name, func(c any) error { return Set(c, text[len(name):]) })
}

// made returns a value of the kind with this name, after set has set it through a pointer.
func (ts Types[T]) made(name string, set func(c any) error) (v T, err error) {
	known, ok := ts.Get(name)
	if !ok {
		return v, fmt.Errorf("there are no %s of kind %.100q: use %s%s", ts.What, name, ts, text.DidYouMean(name, ts.Names()))
	}
	if v, err = known.made(set); err != nil {
		return v, fmt.Errorf("%s of kind %s: %w", ts.What, name, err)
	}
	return v, nil
}

// Choice returns the types as a Choice for a flag.
func (ts Types[T]) Choice() Choice {
	return Choice{
		All:   ts.All(),
		Parse: func(text string) (any, error) { return ts.Parse(text) },
		Text: func(v any) string {
			t, _ := v.(T)
			data, err := ts.Marshal(t)
			if err != nil {
				return ""
			}
			return Text(data)
		},
	}
}

// Text converts a JSON object to the text for Parse: the value of "kind", which must be the first key, and the other
// fields.
func Text(object []byte) string {
	d := json.NewDecoder(bytes.NewReader(object))
	d.Token() // {
	var text strings.Builder
	for d.More() {
		name, _ := d.Token()
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return ""
		}
		if name == "kind" {
			text.Write(bytes.Trim(value, `"`))
		} else {
			fmt.Fprintf(&text, ",%s=%s", name, value)
		}
	}
	return text.String()
}

// Set sets fields of the struct that v points to. The text has the form ",field=value,field=value", with the fields'
// JSON names except "kind". A value is JSON, such as 0.5, true, [1,2] or {"factor":2}; anything else is a string. Set
// returns an error if a field is unknown, is given twice or can't have the value.
func Set(v any, fields string) error {
	known := fieldNames(reflect.TypeOf(v).Elem())
	given := map[string]json.RawMessage{}
	for fields != "" {
		fields = fields[1:] // a comma
		name, rest, ok := strings.Cut(fields, "=")
		switch {
		case !ok || strings.Contains(name, ","):
			return fmt.Errorf("expected field=value after each comma, got %.100q", fields)
		case len(known) == 0:
			return fmt.Errorf("it has no fields, got %.100q", name)
		case !slices.Contains(known, name):
			return fmt.Errorf("it has no field %.100q: use %s%s", name, strings.Join(known, ", "), text.DidYouMean(name, known))
		case given[name] != nil:
			return fmt.Errorf("%s is given twice: leave one", name)
		}
		given[name], fields = value(rest)
	}
	data, err := json.Marshal(given)
	if err == nil {
		err = Decode(data, v)
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		name, _, _ := strings.Cut(wrong.Field, ".")
		return fmt.Errorf("%s can't be %.100s", wrong.Field, given[name])
	}
	return err
}

// value returns the value at the beginning of a text as JSON, and the rest of the text. The rest is empty or begins
// with a comma.
func value(text string) (data json.RawMessage, rest string) {
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(&data); err == nil && string(data) != "null" {
		if rest = text[d.InputOffset():]; rest == "" || rest[0] == ',' {
			return data, rest
		}
	}
	field, _, _ := strings.Cut(text, ",")
	data, _ = json.Marshal(field) // can't fail for a string
	return data, text[len(field):]
}

// fieldNames returns the JSON names of a struct's fields, except "kind".
func fieldNames(t reflect.Type) (names []string) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "" && name != "-" && name != "kind" {
			names = append(names, name)
		}
	}
	return names
}

// didYouMean returns the end of an error about an unknown key in the JSON of a struct: the shortest path of the nearest
// key.
func didYouMean(unknown string, t reflect.Type) string {
	paths := keyPaths(t, "")
	slices.SortFunc(paths, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	var keys []string
	for _, path := range paths {
		keys = append(keys, path[strings.LastIndex(path, ".")+1:])
	}
	if i := slices.Index(keys, text.Nearest(unknown, keys)); i >= 0 {
		return "; did you mean " + paths[i] + "?"
	}
	return ""
}

// keyPaths returns the paths of the keys in the JSON of a struct, each with prefix before it.
func keyPaths(t reflect.Type, prefix string) (paths []string) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		inside := prefix // of an embedded struct
		if name != "" {
			paths, inside = append(paths, prefix+name), prefix+name+"."
		}
		if f.Type.Kind() == reflect.Struct {
			paths = append(paths, keyPaths(f.Type, inside)...)
		}
	}
	return paths
}

// Decode sets v from JSON. It returns an error if v has no field for a key, if a key is repeated or differs in case, or
// if anything follows the JSON value.
func Decode(data []byte, v any) error {
	err := jsonkeys.Check(data, jsonkeys.Lower)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		err = d.Decode(v)
	}
	if err == nil {
		return nil
	}
	const unknown = "unknown key "
	if message := strings.Replace(err.Error(), "json: unknown field ", unknown, 1); strings.HasPrefix(message, unknown) {
		quoted, _ := strconv.QuotedPrefix(message[len(unknown):])
		key, _ := strconv.Unquote(quoted)
		return errors.New(message + didYouMean(key, reflect.TypeOf(v).Elem()))
	}
	return err
}
