package jsonkeys

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
)

func lower(key string) bool { return strings.ToLower(key) == key }

var tests = []struct{ content, want string }{ // want is in the error; "" means no error
	{`{}`, ""},
	{` [1e999, "a", null, true, {"a": {"a": [{"a": 1}, {"a": 2}]}, "b": {"a": -0.5}}] `, ""},
	{`"a"`, ""},
	{`{"é": 1, "e": 2, "": 3}`, ""},
	{`{"a": 1, "a": 1}`, `"a" is given twice`},
	{`{"a": 1, "b": {"a": 2}, "a": 3}`, `"a" is given twice`},
	{`{"a": 1, "\u0061": 1}`, `"a" is given twice`},
	{`{"": 1, "": 1}`, `"" is given twice`},
	{`{"\ud800": 1}`, `a key has only half of a character`},
	{`{"a": ["\ud834\udd1e\\ud834 \ufffd", {"b": "\udd1e\ud834"}]}`, `a text in "a.b" has only half of a character`},
	{`{"a": "\ud834\n\udd1e"}`, `half of a character`},
	{`{"training": [{"stop": {"a": 1}}, {"stop": {"a": 1, "b": {}, "b": {}}}]}`, `"b" in "training.stop" is given twice`},
	{`{"A": 1}`, `unknown key "A"`},
	{`{"model": {"dIm": 1}}`, `unknown key "dIm" in "model"`},
	{"{\"a\": \"\xff\"}", "UTF-8"},
}

func TestCheck(t *testing.T) {
	for _, test := range tests {
		must.Match(t, Check([]byte(test.content), lower), test.want)
	}
	if err := Check([]byte(`{"A": {"B": 1}}`), nil); err != nil {
		t.Errorf("with all keys allowed: got %v, want no error", err)
	}
	for _, content := range []string{"", "x", `{"a"}`, `{"a": 1,}`, `[1 2]`, `{} {}`, `{"a": 01}`, "{\"a\n\": 1}", strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)} {
		if err := Check([]byte(content), nil); !errors.As(err, new(*json.SyntaxError)) {
			t.Errorf("%.20s: got error %v, want a *json.SyntaxError", content, err)
		}
	}
}

// TestDeepKeys checks that deep objects need memory only in proportion to the text.
func TestDeepKeys(t *testing.T) {
	const depth = 9000
	key := `{"` + strings.Repeat("k", 100) + `":`
	content := []byte(strings.Repeat(key, depth) + "1" + strings.Repeat("}", depth))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	must.Do(t, Check(content, nil))
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 {
		t.Errorf("%d bytes were allocated for a text of %d bytes", got, len(content))
	}
}

// keys returns the number of keys in all objects of a decoded value.
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

// colons returns the number of keys in a JSON text.
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

// FuzzCheck checks that Check accepts only JSON that encoding/json accepts. If Check finds no mistake, encoding/json
// must read all keys, and may read U+FFFD only where the JSON has it.
func FuzzCheck(f *testing.F) {
	for _, test := range tests {
		f.Add([]byte(test.content))
	}
	f.Add([]byte(`{"a": [1, {"b": "\"\\:{"}], "c\"": {}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		err := Check(content, nil)
		if !json.Valid(content) || !utf8.Valid(content) {
			if err == nil {
				t.Fatal("Check accepted content that isn't JSON in UTF-8")
			}
			return
		}
		d := json.NewDecoder(strings.NewReader(string(content)))
		d.UseNumber()
		var v any
		must.Do(t, d.Decode(&v))
		lost := colons(content)-keys(v) > 0
		replaced := strings.Contains(fmt.Sprint(v), "\uFFFD")
		given := bytes.Contains(content, []byte("\uFFFD")) || bytes.Contains(bytes.ToLower(content), []byte("ufffd"))
		if err == nil && (lost || replaced && !given) || err != nil && !lost && !replaced {
			t.Fatalf("encoding/json lost keys: %t, and replaced parts of characters: %t, but Check says %v", lost, replaced, err)
		}
	})
}

func TestMembersAndElements(t *testing.T) {
	content := []byte(` { "a\u0062" : [1, "]\"", {"x": [ ]}] , "c":null,"d" : -1.5e3 ,"e":{}}`)
	must.Do(t, Check(content, nil))
	var got []string
	err := Members(content, func(key string, value []byte) error {
		if got = append(got, key+"="+string(value)); value[0] != '[' {
			return nil
		}
		return Elements(value, func(element []byte) error {
			got = append(got, string(element))
			return nil
		})
	})
	want := []string{`ab=[1, "]\"", {"x": [ ]}]`, `1`, `"]\""`, `{"x": [ ]}`, `c=null`, `d=-1.5e3`, `e={}`}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	stop := errors.New("stop")
	if err := Members(content, func(string, []byte) error { return stop }); err != stop {
		t.Errorf("got error %v of Members, want its function's", err)
	}
	if err := Elements([]byte("[1]"), func([]byte) error { return stop }); err != stop {
		t.Errorf("got error %v of Elements, want its function's", err)
	}
}

func TestTooManyKeys(t *testing.T) {
	testseed.Slow(t)
	content := []byte{'{'}
	for i := range mostKeys + 1 {
		content = fmt.Appendf(content, `"%x":0,`, i)
	}
	content[len(content)-1] = '}'
	must.Fail(t, Check(content, nil), "1048576 keys at most")
}

// Mistakes that other programs make in JSON have a message that says what to do.
func TestExplained(t *testing.T) {
	for content, want := range map[string]string{
		"\ufeff{}":               "byte-order mark",
		`{"a": NaN}`:             "the number NaN",
		`{"a": [1, -Infinity]}`:  "the number Infinity",
		`{"a": Infinity, "b": 1`: "the number Infinity",
		`{"a": Nothing}`:         "invalid character",
		`{"NaN": }`:              "invalid character",
		`{`:                      "unexpected end",
	} {
		err := Check([]byte(content), nil)
		must.Fail(t, err, want)
		if !errors.As(err, new(*json.SyntaxError)) {
			t.Errorf("%q: got the error %v, want a *json.SyntaxError", content, err)
		}
	}
}
