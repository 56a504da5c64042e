package tokenizer

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// A hostile has the files of a tokenizer by their names. A base has one file, under the name "".
type hostile struct {
	recipe string // the base and its changes
	name   string // the file to open, or "." for the folder
	files  map[string][]byte
	text   string // a text of the base
}

type dict = map[string]any

// A drawer draws changes of files.
type drawer struct{ *rand.Rand }

func pick[T any](d drawer, values ...T) T { return values[d.IntN(len(values))] }

func (d drawer) flip() bool { return d.IntN(2) == 0 }

// text returns a long text, or one that is easily handled wrongly.
func (d drawer) text() string {
	if d.IntN(3) > 0 {
		return pick(d, "", "a", "aa", " ", "▁", "##", "</w>", "\x00", "é", "\u0301", "\u202e", "\U0010ffff", "\ufffd", "İ", "ß", "ﷺ", "<0x41>", "a a", "[UNK]", "A", "\n", ".")
	}
	return strings.Repeat(pick(d, "a", "é", " ", "\u0301", "ab"), pick(d, 2, 16, 100, 127, 128, 255, 256, 257, 1000, 1024, 2047, 2048, 2049, 4095, 4096, 4097, 7999, 100000))
}

func (d drawer) number() any {
	if d.flip() {
		return d.IntN(300)
	}
	return pick[any](d, 0, -1, int64(1<<31), 1<<31-1, int64(1<<32), int64(1<<53), int64(1000000000000000000), json.Number("1e308"), json.Number("-1e308"), 0.5, 1e-300, 16777216, 65536)
}

// texts returns many texts. They are all different, or each begins with the one before.
func (d drawer) texts(prefix string) (list []string) {
	nested := d.flip()
	for i := range pick(d, 3, 100, 500, 2000, 30000, 300000) {
		if nested && i < 2000 {
			list = append(list, prefix+strings.Repeat("a", i+1))
		} else if !nested {
			list = append(list, fmt.Sprint(prefix, "x", i))
		}
	}
	return list
}

// charsmap returns a precompiled_charsmap that replaces a character.
func (d drawer) charsmap() []byte {
	const children, value = 256, 512 // distances in a trie with one key
	units, key := make([]uint32, 1024), pick[uint32](d, 'a', 'a', ' ', 'b')
	units[0], units[children^key] = children<<10, value<<10|1<<8|key
	if d.IntN(8) == 0 {
		units[d.IntN(len(units))] = d.Uint32()
	}
	table, _ := binary.Append(binary.LittleEndian.AppendUint32(nil, uint32(4*len(units))), binary.LittleEndian, units)
	return append(table, strings.Repeat(pick(d, "a", "a", "b", "é", " "), pick(d, 0, 1, 2, 3, 128, 255, 256, 257))+"\x00"...)
}

// filled replaces names in JSON: $T by a text, $N by a number, $B by true or false, $C by a precompiled_charsmap.
func (d drawer) filled(part string) any {
	return json.RawMessage(regexp.MustCompile(`\$[TNBC]`).ReplaceAllStringFunc(part, func(letter string) string {
		return string(encoded(map[string]any{"T": d.text(), "N": d.number(), "B": d.flip(), "C": base64.StdEncoding.EncodeToString(d.charsmap())}[letter[1:]]))
	}))
}

func encoded(value any) []byte {
	var file bytes.Buffer
	enc := json.NewEncoder(&file)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		panic(err)
	}
	return file.Bytes()
}

// hostileBases returns the tokenizers that drawHostile changes: all families and SentencePiece models.
func hostileBases(t testing.TB) (bases []hostile) {
	for _, f := range families(t) {
		text := ""
		for _, c := range f.Texts[:min(60, len(f.Texts))] {
			text += c.Text + "\n"
		}
		bases = append(bases, hostile{f.name, "tokenizer.json", map[string][]byte{"": f.Tokenizer}, text})
	}
	paths, err := filepath.Glob(filepath.Join(*modelFolder, "*.json.gz"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no models in %s: %v", *modelFolder, err)
	}
	for _, path := range paths {
		var set pieceSet
		readGzip(t, path, &set)
		bases = append(bases, hostile{filepath.Base(path), "spiece.model", map[string][]byte{"": set.Model}, set.Texts[0].Text})
	}
	return bases
}

// drawHostile draws a tokenizer: a large file, a mutation of a base, or a base with one or two limits of the format.
func drawHostile(d drawer, bases []hostile) hostile {
	h := pick(d, bases...)
	content := h.files[""]
	h.files = map[string][]byte{}
	change := func(changes map[string]func()) {
		name := pick(d, slices.Sorted(maps.Keys(changes))...)
		h.recipe += ", " + name
		changes[name]()
	}
	var file dict
	json.Unmarshal(content, &file) // leaves nil for a model
	switch n := d.IntN(100); {
	case n < 8:
		part := pick(d, largeParts...)
		h.recipe, h.name, content = "large "+part, "tokenizer.json", d.large(part)
	case file == nil:
		for range pick(d, 1, 2, 2) {
			change(d.modelChanges(&content))
		}
		if class := pick(d, "", "Llama", "T5", "Gemma"); class != "" {
			h.files["tokenizer_config.json"] = fmt.Appendf(nil, `{"tokenizer_class": "%sTokenizer", "legacy": %t}`, class, d.flip())
		}
	default:
		for range pick(d, 1, 2, 2) {
			if n < 40 {
				change(d.mutations(file))
			} else {
				change(d.limits(file))
			}
		}
		file["version"] = "1.0"
		if content = encoded(file); d.IntN(6) == 0 {
			d.intoFolder(&h, file)
			return h
		}
	}
	h.files[h.name] = content
	return h
}

// mutations returns changes of a random value in a tokenizer.json.
func (d drawer) mutations(file dict) map[string]func() {
	get, put := d.place(file)
	other, putOther := d.place(file)
	var value, copied any
	for target, source := range map[*any]any{&value: get(), &copied: other()} {
		if err := json.Unmarshal(encoded(source), target); err != nil {
			panic(err)
		}
	}
	return map[string]func(){
		"change": func() {
			switch value := value.(type) {
			case string:
				put(d.text())
			case float64:
				put(pick(d, d.number(), any(value+1), any(value-1)))
			case bool:
				put(!value)
			default:
				put(pick[any](d, nil, dict{}, []any{}, true, 1, "a"))
			}
		},
		"copy": func() { put(copied) },
		"swap": func() { putOther(value); put(copied) },
		"null": func() { put(nil) },
		"repeat": func() {
			if list, ok := value.([]any); ok && len(list) > 0 {
				put(append(list, slices.Repeat(list[:1], pick(d, 1, 20, 5000))...))
			}
		},
	}
}

// place returns functions that get and set a random value inside an object.
func (d drawer) place(file dict) (get func() any, put func(any)) {
	for value := any(file); get == nil || d.IntN(8) > 0; value = get() {
		if v, ok := value.(dict); ok && len(v) > 0 {
			key := pick(d, slices.Sorted(maps.Keys(v))...)
			get, put = func() any { return v[key] }, func(value any) { v[key] = value }
		} else if v, ok := value.([]any); ok && len(v) > 0 {
			i := d.IntN(len(v))
			get, put = func() any { return v[i] }, func(value any) { v[i] = value }
		} else {
			break
		}
	}
	return get, put
}

// checkParts returns an error if a token of a text has an unknown id, or if its part of the text isn't whole
// characters. It also returns an error if the ids give another text at once than one by one.
func checkParts(tok Tokenizer, text string, tokens []Token) error {
	boundary := func(i int) bool { return i == len(text) || i >= 0 && i < len(text) && utf8.RuneStart(text[i]) }
	d := Decoder{Tokenizer: tok}
	var ids []int
	var streamed strings.Builder
	var failed error
	for _, token := range tokens {
		if token.ID < 0 || token.ID >= tok.Len() || token.Start > token.End || !boundary(token.Start) || !boundary(token.End) {
			return fmt.Errorf("%.100q, a text of %d bytes, has the token %v; there are %d ids", text, len(text), token, tok.Len())
		}
		ids = append(ids, token.ID)
		if failed == nil {
			var part string
			part, failed = d.Next(token.ID)
			streamed.WriteString(part)
		}
	}
	streamed.WriteString(d.Flush())
	whole, err := tok.Decode(ids)
	if (err == nil) != (failed == nil) || err == nil && streamed.String() != valid(whole) {
		return fmt.Errorf("the %d ids of %.100q are %.100q, %.100v at once, and %.100q, %.100v one by one", len(ids), text, whole, err, streamed.String(), failed)
	}
	return nil
}
