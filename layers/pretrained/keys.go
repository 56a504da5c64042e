package pretrained

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

// An UnsupportedError says that a folder has a setting that this package can't honour.
type UnsupportedError struct {
	Key   string // such as hidden_act
	Value string // the value, as JSON; shortened if it is long
	Want  string // what is supported
}

// Error names the key, its value and what is supported.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s %s isn't supported: expected %s", e.Key, e.Value, e.Want)
}

func unsupported(key string, value any, want string) error {
	return &UnsupportedError{Key: key, Value: show(value), Want: want}
}

// show returns a value as JSON for an error.
func show(value any) string {
	shown, err := text.JSON(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return text.Shorten(string(bytes.TrimSpace(shown)), 100, 0)
}

const (
	maxJSON  = 1 << 22   // bytes of a JSON file, except an index
	maxInt   = 1<<31 - 1 // largest integer in a configuration
	maxCount = 10_000    // largest number of classes, and of layers that may differ
)

// A keys holds the members of a JSON object. It copies them to Go variables or, if writing is set, Go variables to
// them, so that one list of calls both reads and writes a file. The first error is kept in err.
type keys struct {
	file    string
	values  map[string]any
	writing bool
	err     error

	// known has the names of the members that were read. It is false for a name if only one value is supported.
	known map[string]bool
}

// get returns the value of a member, or nil if it is missing.
func (k *keys) get(name string) any {
	k.know(name, true)
	return k.values[name]
}

func (k *keys) know(name string, read bool) {
	if k.known == nil {
		k.known = map[string]bool{}
	}
	k.known[name] = k.known[name] || read
}

// readJSON decodes a JSON file of at most limit bytes. Numbers become json.Number.
func readJSON(fsys fs.FS, name string, limit int64, v any) error {
	info, err := fs.Stat(fsys, name) // before opening, because opening a pipe waits for its writer
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("expected a regular file, got %v", info.Mode())
	}
	if err != nil {
		return err
	}
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("expected at most %d bytes, got more", limit)
	}
	if err != nil {
		return err
	}
	return decodeJSON(content, v)
}

func decodeJSON(content []byte, v any) error {
	if err := jsonkeys.Check(content, nil); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	return d.Decode(v)
}

// readKeys reads a file with a JSON object. If it is optional and missing, it has no members.
func readKeys(fsys fs.FS, file string, optional bool) *keys {
	k := &keys{file: file, values: map[string]any{}}
	if k.err = readJSON(fsys, file, maxJSON, &k.values); optional && errors.Is(k.err, fs.ErrNotExist) {
		k.err = nil
	}
	return k
}

func exists(fsys fs.FS, name string) bool {
	_, err := fs.Stat(fsys, name)
	return err == nil
}

// defaults adds the members of an object in JSON to those that are missing.
func (k *keys) defaults(object string) {
	values := map[string]any{}
	k.fail(decodeJSON([]byte(object), &values))
	for name, v := range values {
		if _, ok := k.values[name]; !ok {
			k.values[name] = v
		}
	}
}

// fail keeps the first error. A nil error changes nothing.
func (k *keys) fail(err error) {
	if k.err == nil {
		k.err = err
	}
}

// invalid keeps an error about the value of a member.
func (k *keys) invalid(name, want string) {
	k.fail(fmt.Errorf("%s must be %s, got %s", name, want, show(k.values[name])))
}

// done returns the first error, with the name of the file.
func (k *keys) done() error {
	if k.err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", k.file, k.err)
}

// Variables of these types have another form in JSON.
type (
	not    bool    // the opposite
	none   float64 // null for 0
	zero   int     // null for 0
	ids    []int   // one token id or a list of them; negative ids mean none
	id     int     // null for −1; the first of a list
	signed int     // a whole number, also below 0
	ends   decode.BeamEnd
	lists  [][]int // of token ids
)

// copy copies members: its arguments are, alternately, a name and a pointer to a variable. A variable of a member that
// is missing or null keeps its value; only a Window becomes nil.
func (k *keys) copy(list ...any) {
	for i := 0; i < len(list); i += 2 {
		name, v := list[i].(string), list[i+1]
		if value := k.get(name); k.writing {
			k.values[name] = written(v)
		} else if w, ok := v.(**layers.Window); ok && value == nil {
			*w = nil
		} else if value != nil {
			k.read(name, value, v)
		}
	}
}

// written returns the JSON value of a variable. Floats have a point or an exponent, because the reference library tells
// them from whole numbers.
func written(v any) any {
	switch v := v.(type) {
	case *int:
		return *v
	case *float64:
		number := strconv.FormatFloat(*v, 'g', -1, 64)
		if !strings.ContainsAny(number, ".e") {
			number += ".0"
		}
		return json.Number(number)
	case *none:
		if *v != 0 {
			return written((*float64)(v))
		}
	case *zero:
		if *v != 0 {
			return int(*v)
		}
	case *bool:
		return *v
	case *not:
		return !*v
	case *string:
		return *v
	case *[]string:
		return *v
	case *ids:
		return *v
	case *id:
		if *v >= 0 {
			return *v
		}
	case *signed:
		return int(*v)
	case *ends:
		return []any{decode.EndSure: "never", decode.EndLikely: false, decode.EndFull: true}[*v]
	case *lists:
		return *v
	case *layers.Activation:
		return activations[max(0, slices.IndexFunc(activations, func(a choices.Entry[layers.Activation]) bool { return a.Value == *v }))].Name
	case **layers.Window: // with the token itself
		if *v != nil {
			return (*v).Left + 1
		}
	}
	return nil
}

// read sets a variable to the value of a member.
func (k *keys) read(name string, value, v any) {
	want, n, whole := "", 0, false
	if number, ok := value.(json.Number); ok {
		n, whole = integer(number)
	}
	list, isList := value.([]any)
	switch v := v.(type) {
	case *int:
		want = set(v, n, whole && n >= 0, "a whole number from 0 to "+strconv.Itoa(maxInt))
	case *float64:
		number, _ := value.(json.Number)
		x, err := number.Float64()
		want = set(v, x, err == nil, "a finite number")
	case *none:
		k.read(name, value, (*float64)(v))
	case *zero:
		k.read(name, value, (*int)(v))
	case *bool:
		x, ok := value.(bool)
		want = set(v, x, ok, "true or false")
	case *not:
		x, ok := value.(bool)
		want = set(v, not(!x), ok, "true or false")
	case *string:
		x, ok := value.(string)
		want = set(v, x, ok, "a string")
	case *[]string:
		*v = nil
		for _, element := range list {
			x, ok := element.(string)
			*v, isList = append(*v, x), isList && ok
		}
		want = set(v, *v, isList, "a list of strings")
	case *ids:
		if !isList {
			list = []any{value}
		}
		*v, isList = ids{}, true
		for _, element := range list {
			number, _ := element.(json.Number)
			if n, ok := integer(number); !ok {
				isList = false
			} else if n >= 0 {
				*v = append(*v, n)
			}
		}
		want = set(v, *v, isList, "a token id or a list of them")
	case *id:
		var list ids
		k.read(name, value, &list)
		*v = id(append(list, -1)[0])
	case *signed:
		want = set(v, signed(n), whole, "a whole number")
	case *ends:
		end, ok := map[string]decode.BeamEnd{`"never"`: decode.EndSure, "false": decode.EndLikely, "true": decode.EndFull}[show(value)]
		want = set(v, ends(end), ok, `true, false or "never"`)
	case *lists:
		*v = nil
		for _, element := range list {
			var row ids
			elements, ok := element.([]any)
			k.read(name, element, &row)
			*v, isList = append(*v, row), isList && ok && len(row) > 0 && len(row) == len(elements)
		}
		want = set(v, *v, isList, "a list of lists of token ids")
	case *layers.Activation:
		x, _ := value.(string)
		a, ok := activations.Get(x)
		if !ok {
			k.fail(unsupported(name, value, activations.String()))
			return
		}
		*v = a
	case **layers.Window:
		want = set(v, &layers.Window{Left: n - 1}, whole && n >= 1, "a whole number from 1, or null for no window")
	}
	if want != "" {
		k.invalid(name, want)
	}
}

// set sets v to x. If x isn't valid, it returns want instead.
func set[T any](v *T, x T, valid bool, want string) string {
	if !valid {
		return want
	}
	*v = x
	return ""
}

// integer returns a whole number of at most maxInt in size.
func integer(number json.Number) (int, bool) {
	n, err := strconv.ParseInt(string(number), 10, 64)
	return int(n), err == nil && n >= -maxInt && n <= maxInt
}

// only checks that members have the only supported value: its arguments are, alternately, a name and a value. A missing
// member is supported.
func (k *keys) only(list ...any) {
	for i := 0; i < len(list); i += 2 {
		name, want := list[i].(string), list[i+1]
		k.know(name, false)
		if value := k.values[name]; k.writing {
			k.values[name] = want
		} else if value != nil && strings.TrimSuffix(show(value), ".0") != show(want) {
			k.fail(unsupported(name, value, show(want)))
		}
	}
}

// object returns the first of the named members that is an object with members. If there is none, the result is empty.
func (k *keys) object(names ...string) *keys {
	for _, name := range names {
		k.know(name, true)
	}
	for _, name := range names {
		if value, ok := k.values[name].(map[string]any); ok && len(value) > 0 {
			return &keys{values: value}
		} else if !ok && k.values[name] != nil {
			k.invalid(name, "an object")
		}
	}
	return &keys{values: map[string]any{}, writing: k.writing}
}

// put takes over the error of p. If k is writing, p becomes a member of it.
func (k *keys) put(name string, p *keys) {
	if k.fail(p.err); k.writing {
		k.values[name] = p.values
	}
}

// activations lists the names of activations. The first name of each is written.
var activations = choices.Table[layers.Activation]{
	{Name: "gelu", Value: layers.GELU}, {Name: "gelu_python", Value: layers.GELU}, {Name: "gelu_new", Value: layers.GELUTanh},
	{Name: "gelu_pytorch_tanh", Value: layers.GELUTanh}, {Name: "gelu_fast", Value: layers.GELUTanh}, {Name: "gelu_accurate", Value: layers.GELUTanh},
	{Name: "relu", Value: layers.ReLU}, {Name: "silu", Value: layers.SiLU}, {Name: "swish", Value: layers.SiLU}, {Name: "tanh", Value: layers.Tanh},
	{Name: "sigmoid", Value: layers.Sigmoid},
}
