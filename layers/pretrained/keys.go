package pretrained

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
)

// An UnsupportedError says that a folder has a setting that this package can't honour.
type UnsupportedError struct {
	Key   string // such as rope_scaling.rope_type
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
	maxJSON = 1 << 20   // bytes of a JSON file, except an index
	maxInt  = 1<<31 - 1 // largest integer in a configuration

	maxLayers = 10_000 // largest number of layers, and of classes
)

// A keys holds the members of a JSON object. It copies them to Go variables or, if writing is set, Go variables to
// them, so that one list of calls both reads and writes config.json. A variable of a member that is missing or null
// keeps its value. The first error is kept in err.
type keys struct {
	values  map[string]any
	writing bool
	err     error
}

// readFile returns the content of a file of at most limit bytes.
func readFile(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("expected at most %d bytes, got more", limit)
	}
	return content, err
}

// readJSON decodes a JSON file. Numbers become json.Number.
func readJSON(fsys fs.FS, name string, limit int64, v any) error {
	content, err := readFile(fsys, name, limit)
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

// readKeys reads a file with a JSON object. With optional, a missing file has no members.
func readKeys(fsys fs.FS, name string, optional bool) (*keys, error) {
	k := &keys{values: map[string]any{}}
	err := readJSON(fsys, name, maxJSON, &k.values)
	if optional && errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	return k, err
}

// defaults adds members to those that are missing.
func (k *keys) defaults(object string) {
	values := map[string]any{}
	if err := decodeJSON([]byte(object), &values); err != nil {
		panic(err) // a constant of this package
	}
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

// member copies one member. The function read returns false if it can't read the value.
func member[T any](k *keys, name, want string, v *T, read func(value any) (T, bool)) {
	if k.writing {
		k.values[name] = *v
		return
	}
	if value := k.values[name]; value != nil {
		x, ok := read(value)
		if !ok {
			k.invalid(name, want)
			return
		}
		*v = x
	}
}

func (k *keys) int(name string, v *int) {
	member(k, name, "a whole number from 0 to "+strconv.Itoa(maxInt), v, func(value any) (int, bool) {
		n, ok := integer(value)
		return n, ok && n >= 0
	})
}

// integer returns a whole number of at most maxInt in size.
func integer(value any) (int, bool) {
	number, _ := value.(json.Number)
	n, err := strconv.ParseInt(string(number), 10, 64)
	return int(n), err == nil && n >= -maxInt && n <= maxInt
}

// float copies a number. It is written with a point or an exponent, because the reference library tells floats from
// whole numbers.
func (k *keys) float(name string, v *float64) {
	if k.writing {
		number := strconv.FormatFloat(*v, 'g', -1, 64)
		if !strings.ContainsAny(number, ".e") {
			number += ".0"
		}
		k.values[name] = json.Number(number)
		return
	}
	member(k, name, "a finite number", v, func(value any) (float64, bool) {
		number, _ := value.(json.Number)
		x, err := number.Float64()
		return x, err == nil && !math.IsInf(x, 0)
	})
}

// optional is like float, but null means 0.
func (k *keys) optional(name string, v *float64) {
	if k.writing && *v == 0 {
		k.values[name] = nil
		return
	}
	k.float(name, v)
}

func (k *keys) bool(name string, v *bool) {
	member(k, name, "true or false", v, func(value any) (bool, bool) {
		x, ok := value.(bool)
		return x, ok
	})
}

// not is like bool, but *v is the opposite of the member.
func (k *keys) not(name string, v *bool) {
	opposite := !*v
	k.bool(name, &opposite)
	*v = !opposite
}

func (k *keys) text(name string, v *string) {
	member(k, name, "a string", v, func(value any) (string, bool) {
		x, ok := value.(string)
		return x, ok
	})
}

// texts copies a list of strings.
func (k *keys) texts(name string, v *[]string) {
	member(k, name, "a list of strings", v, func(value any) (x []string, _ bool) {
		list, ok := value.([]any)
		for _, element := range list {
			s, isString := element.(string)
			x, ok = append(x, s), ok && isString
		}
		return x, ok
	})
}

// ids copies one token id or a list of them. Negative ids mean none.
func (k *keys) ids(name string, v *[]int) {
	member(k, name, "a token id or a list of them", v, func(value any) ([]int, bool) {
		list, isList := value.([]any)
		if !isList {
			list = []any{value}
		}
		x := []int{}
		for _, element := range list {
			id, ok := integer(element)
			if !ok {
				return nil, false
			}
			if id >= 0 {
				x = append(x, id)
			}
		}
		return x, true
	})
}

// id copies a token id; −1 means none. From a list, it reads the first.
func (k *keys) id(name string, v *int) {
	if k.writing {
		if *v >= 0 {
			k.values[name] = *v
		}
		return
	}
	var list []int
	if k.ids(name, &list); len(list) > 0 {
		*v = list[0]
	} else if list != nil {
		*v = -1
	}
}

// only checks that a member has one of the supported values, of which the first is written. A missing member is
// supported.
func (k *keys) only(name string, supported ...any) {
	value := k.values[name]
	if k.writing {
		k.values[name] = supported[0]
	} else if value != nil && !slices.ContainsFunc(supported, func(x any) bool { return show(x) == show(value) }) {
		k.fail(unsupported(name, value, text.List(len(supported), len(supported), " or ", func(i int) string { return show(supported[i]) })))
	}
}

// activations lists the names of activations. The first name of each is written.
var activations = []struct {
	name  string
	value layers.Activation
}{
	{"gelu", layers.GELU}, {"gelu_python", layers.GELU},
	{"gelu_new", layers.GELUTanh}, {"gelu_pytorch_tanh", layers.GELUTanh}, {"gelu_fast", layers.GELUTanh}, {"gelu_accurate", layers.GELUTanh},
	{"relu", layers.ReLU}, {"silu", layers.SiLU}, {"swish", layers.SiLU},
}

func (k *keys) activation(name string, v *layers.Activation) {
	var value string
	for _, a := range slices.Backward(activations) {
		if a.value == *v {
			value = a.name
		}
	}
	k.text(name, &value)
	for _, a := range activations {
		if a.name == value {
			*v = a.value
			return
		}
	}
	if value != "" {
		k.fail(unsupported(name, value, text.List(len(activations), len(activations), " or ", func(i int) string { return show(activations[i].name) })))
	}
}

// window copies the size of a sliding window, the token itself included; null means no window.
func (k *keys) window(name string, v **layers.Window) {
	size := 0
	if *v != nil {
		size = (*v).Left + 1
	}
	if k.writing && size == 0 {
		k.values[name] = nil
		return
	}
	if k.int(name, &size); k.values[name] == nil {
		*v = nil
	} else if *v = (&layers.Window{Left: size - 1}); size < 1 {
		k.invalid(name, "at least 1, or null for no window")
	}
}

// slidingWindow returns the first window that a block has, or nil.
func slidingWindow(m layers.ModelConfig) *layers.Window {
	for _, v := range m.Variants {
		if v.Window != nil {
			return v.Window
		}
	}
	return m.Block.Attention.Window
}

// The values of layer_types.
const (
	fullAttention    = "full_attention"
	slidingAttention = "sliding_attention"
)

// layerTypes copies which blocks have the sliding window, and the positions local unless they are nil. The argument
// slides says so for a missing layer_types.
func (k *keys) layerTypes(c *Config, window *layers.Window, local layers.PositionsConfig, slides func(i int) bool) {
	m := &c.Model
	var types []string
	if k.writing {
		types = slices.Repeat([]string{fullAttention}, m.Layers)
		for _, v := range m.Variants {
			for _, i := range v.Blocks {
				if i >= 0 && i < m.Layers {
					types[i] = slidingAttention
				}
			}
		}
		if m.Block.Attention.Window != nil {
			types = slices.Repeat([]string{slidingAttention}, m.Layers)
		}
	}
	if k.texts("layer_types", &types); k.writing || k.err != nil {
		return
	}
	var blocks []int
	for i := range m.Layers {
		if types == nil {
			if slides(i) {
				blocks = append(blocks, i)
			}
		} else if len(types) != m.Layers {
			k.invalid("layer_types", fmt.Sprintf("a list of %d, one for each layer", m.Layers))
			return
		} else if types[i] == slidingAttention {
			blocks = append(blocks, i)
		} else if types[i] != fullAttention {
			k.fail(unsupported("layer_types", types[i], fullAttention+" or "+slidingAttention))
		}
	}
	switch {
	case window == nil && local == nil || len(blocks) == 0:
	case len(blocks) == m.Layers && local == nil:
		m.Block.Attention.Window = window
	default:
		m.Variants = []layers.BlockVariant{{Blocks: blocks, Window: window, Positions: local}}
	}
}

// learned copies the length of a table of learned positions.
func (k *keys) learned(name string, c *Config) {
	if p, ok := c.Model.Positions.(layers.Learned); ok {
		c.MaxLen = p.MaxLen
	}
	k.int(name, &c.MaxLen)
	c.Model.Positions = layers.Learned{MaxLen: c.MaxLen}
}

// layers copies the number of layers, which must be small enough for a list with an element per layer.
func (k *keys) layers(name string, m *layers.ModelConfig) {
	if k.int(name, &m.Layers); m.Layers > maxLayers {
		k.invalid(name, "at most "+strconv.Itoa(maxLayers))
	}
}
