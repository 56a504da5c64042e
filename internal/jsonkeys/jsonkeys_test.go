package jsonkeys

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

func lower(key string) bool { return strings.ToLower(key) == key }

var tests = []struct{ content, want string }{ // "" for none
	{`{}`, ""},
	{` [1e999, "a", null, true, {"a": {"a": [{"a": 1}, {"a": 2}]}, "b": {"a": -0.5}}] `, ""},
	{`"a"`, ""},
	{`{"é": 1, "e": 2, "": 3}`, ""},
	{`{"a": 1, "a": 1}`, `"a" is given twice`},
	{`{"a": 1, "b": {"a": 2}, "a": 3}`, `"a" is given twice`},
	{`{"a": 1, "\u0061": 1}`, `"a" is given twice`},
	{`{"": 1, "": 1}`, `"" is given twice`},
	{`{"\ud800": 1, "\udfff": 1}`, "is given twice"}, // neither is a character: encoding/json takes them for one
	{`{"training": [{"stop": {"a": 1}}, {"stop": {"a": 1, "b": {}, "b": {}}}]}`, `"b" in "training.stop" is given twice`},
	{`{"A": 1}`, `unknown key "A"`},
	{`{"model": {"dIm": 1}}`, `unknown key "dIm" in "model"`},
	{"{\"a\": \"\xff\"}", "UTF-8"},
}

func TestCheck(t *testing.T) {
	for _, test := range tests {
		if err := Check([]byte(test.content), lower); err == nil != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got error %v, want %q", test.content, err, test.want)
		}
	}
	if err := Check([]byte(`{"A": {"B": 1}}`), nil); err != nil {
		t.Errorf("where all keys are allowed: %v", err)
	}
	for _, content := range []string{"", "x", `{"a"}`, `{"a": 1,}`, `[1 2]`, `{} {}`, `{"a": 01}`, "{\"a\n\": 1}", strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)} {
		if err := Check([]byte(content), nil); !errors.As(err, new(*json.SyntaxError)) {
			t.Errorf("%.20s: got error %v, want one of syntax", content, err)
		}
	}
}

// The path to a key takes memory in proportion to the text, however deep it is.
func TestDeepKeys(t *testing.T) {
	const depth = 9000
	key := `{"` + strings.Repeat("k", 100) + `":`
	content := []byte(strings.Repeat(key, depth) + "1" + strings.Repeat("}", depth))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := Check(content, nil); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 {
		t.Errorf("%d bytes were allocated for a text of %d", got, len(content))
	}
}

// keys is how many keys the objects of a decoded value have.
func keys(v any) (n int) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n += keys(e)
		}
	case map[string]any:
		for _, e := range v {
			n += 1 + keys(e)
		}
	}
	return n
}

// colons is how many keys a JSON text has.
func colons(content []byte) (n int) {
	inString := false
	for i := 0; i < len(content); i++ {
		switch c := content[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case c == ':' && !inString:
			n++
		}
	}
	return n
}

// FuzzCheck holds Check to encoding/json: they agree on what is JSON, and where Check finds no key twice, encoding/json
// has lost none.
func FuzzCheck(f *testing.F) {
	for _, test := range tests {
		f.Add([]byte(test.content))
	}
	f.Add([]byte(`{"a": [1, {"b": "\"\\:{"}], "c\"": {}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		err := Check(content, nil)
		if !json.Valid(content) || !utf8.Valid(content) {
			if err == nil {
				t.Fatal("it was taken for JSON in UTF-8")
			}
			return
		}
		d := json.NewDecoder(strings.NewReader(string(content)))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if lost := colons(content) - keys(v); (err != nil) != (lost > 0) {
			t.Fatalf("encoding/json lost %d keys, Check says %v", lost, err)
		}
	})
}
