package table

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// taggedNames are the known names of tokens and tags.
var taggedNames = []Column{{Role: "token list", Names: []string{"tokens", "text"}}, {Role: "tag list", Names: []string{"tags", "ner_tags"}}}

// TestKeysOfObjects checks the errors about a key that leads into an object.
func TestKeysOfObjects(t *testing.T) {
	o := must.Get(members([]byte(`{"id":1,"x":{"en":"a","de":{"f":1}},"y":["a"],"z":{"en":"a"},"Z":{"de":"b"}}`)))(t)
	for key, want := range map[string]string{
		"x.fr": `in "x", the key "fr" is missing: the line has the keys "en", "de.f"`,
		"x.de": `in "x", the value of "de" is an object`,
		"x.":   `in "x", the key "" is missing`,
		"y.en": `the key "y.en" is missing: the line has the keys "id", "x.en", "x.de", "y", "z.en", "Z.de"`,
		"Z.en": `in "Z", the key "en" is missing`,
		" Z.e": `the key " Z" is in the line twice`,
	} {
		if _, err := o.text(key, Column{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", key, err, want)
		}
	}
}

// TestReadJSONL reads lines of JSONL.
func TestReadJSONL(t *testing.T) {
	for _, test := range []struct {
		name, content string
		columns       []string
		want, lines   string
		bad           string // part of the error of the only bad row
	}{
		{name: "known keys in any order", content: "{\"id\":7,\"Label\":\"b\",\"text\":\"a\"}\r\n\r\n{ \"text\" : \"c\\n\\u00e9\" , \"label\" : \"d\" }", want: `[["a" "b"] ["c\né" "d"]]`, lines: "[1 3]"},
		{name: "by key", content: `{"text":"a","label":"b","Queue":"c"}`, columns: []string{"queue", "text"}, want: `[["c" "a"]]`},
		{name: "keys of an object", content: `{"id":1,"Translation":{"en":"a","de":"b"}}`, columns: []string{"translation.de", "translation.EN"}, want: `[["b" "a"]]`},
		{name: "a key with a dot first", content: `{"text":{"en":"x"},"text.en":"a","label":{"of.it":"b"}}`, columns: []string{"text.en", "label.of.it"}, want: `[["a" "b"]]`},
		{name: "the same case first", content: `{"TEXT":"x","text":"a","label":"b"}`, columns: []string{"text", "label"}, want: `[["a" "b"]]`},
		{name: "numbers and booleans", content: `{"text":-1.50e3,"label":true}`, want: `[["-1.50e3" "true"]]`},
		{name: "arrays", content: `{"source":["EU","rejects",5],"target":["B-ORG","O",0]}`, want: `[["EU rejects 5" "B-ORG O 0"]]`},
		{name: "pairs of surrogates", content: `{"text":"\ud834\udd1e\\ud834 \ufffd","label":"b"}`, want: `[["𝄞\\ud834 ` + "\uFFFD" + `" "b"]]`},
		{name: "unwanted keys may be anything", content: "{\"x\":{\"text\":[{}]},\"x\":\"\xff\\ud800\\u0000\",\"text\":\"a\",\"label\":\"b\"}", want: `[["a" "b"]]`},
		{name: "UTF-16", content: inUTF16(binary.LittleEndian, `{"text":"ä","label":"b"}`), want: `[["ä" "b"]]`},

		{name: "an array of objects", content: "[{\"text\":\"a\",\"label\":\"b\"},\n {\n  \"text\": \"c\",\n  \"label\": 1\n }\n]\n", want: `[["a" "b"] ["c" "1"]]`, lines: "[1 2]"},
		{name: "a missing key", content: `{"text":"a","id":1}`, bad: `the key "label" is missing: the line has the keys "text", "id"`},
		{name: "nearly a key", content: `{"text":"a","labels":1}`, bad: `the key "label" is missing: the line has the keys "text", "labels"; did you mean labels?`},
		{name: "no keys", content: `{}`, bad: `the key "text" is missing: the line has no keys`},
		{name: "null", content: `{"text":null,"label":"b"}`, bad: `the text (key "text") is empty`},
		{name: "a key twice", content: `{"text":"a","label":"b","text":"c"}`, bad: `the key "text" is in the line twice`},
		{name: "a key twice, in other cases", content: `{"Text":"a","label":"b","TEXT":"c"}`, bad: `the key "text" is in the line twice`},
		{name: "an object", content: `{"text":{"a":1},"label":"b"}`, bad: `the value of "text" is an object or an array`},
		{name: "nested arrays", content: `{"text":[["a"]],"label":"b"}`, bad: `an element is an object or an array`},
		{name: "an array of sentences", content: `{"text":["a b"],"label":"b"}`, bad: `must not have white space: "a b"`},
		{name: "an array with nothing", content: `{"text":["a",null],"label":"b"}`, bad: `must not be empty`},
		{name: "an empty array", content: `{"text":[],"label":"b"}`, bad: `the text (key "text") is empty`},
		{name: "half a character", content: `{"text":"a\ud800","label":"b"}`, bad: `the value of "text" has only half of a character`},
		{name: "the halves in the wrong order", content: `{"text":"\udd1e\ud834","label":"b"}`, bad: `half of a character`},
		{name: "half a character before another escape", content: `{"text":"\ud834\n\udd1e","label":"b"}`, bad: `half of a character`},
		{name: "invalid UTF-8", content: "{\"text\":\"caf\xe9\",\"label\":\"b\"}", bad: `the value of "text" is not UTF-8: the byte at offset 3`},
		{name: "NUL", content: `{"text":"a\u0000","label":"b"}`, bad: `the text (key "text") has a NUL character`},
		{name: "not JSON", content: `{"text":"a","label":"b",}`, bad: "not JSON: invalid character '}'"},
		{name: "two objects", content: `{"text":"a","label":"b"} {}`, bad: "not JSON: invalid character '{' after top-level value"},
		{name: "no object", content: `"text"`, bad: `not a JSON object: "\"text\""`},
		{name: "deep nesting", content: `{"text":"a","label":"b","x":` + strings.Repeat("[", 1e5) + strings.Repeat("]", 1e5) + "}", bad: "exceeded max depth"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := Options{Columns: test.columns, Known: pairNames}
			if test.bad != "" {
				test.content = strings.Repeat("{\"text\":\"x\",\"label\":\"y\"}\n", 200) + test.content
			}
			checkRows(t, must.Get(Read(writeFile(t, "a.jsonl", test.content), o))(t), test.want, test.lines, test.bad, 201)
		})
	}
}

// checkRows checks the rows of a table, or its only bad row, which is on the given line.
func checkRows(t *testing.T, table *Table, want, lines, bad string, badLine int) {
	t.Helper()
	rows, starts := contents(table)
	if got := fmt.Sprintf("%q", rows); want != "" && got != want {
		t.Errorf("rows %s, want %s", got, want)
	}
	if got := fmt.Sprint(starts); lines != "" && got != lines {
		t.Errorf("lines %s, want %s", got, lines)
	}
	switch {
	case bad == "" && table.LeftOut > 0:
		t.Errorf("bad rows: %v, want none", table.Bad)
	case bad != "" && (table.LeftOut != 1 || table.Bad[0].Line != badLine || !strings.Contains(table.Bad[0].Error(), bad)):
		t.Errorf("%d bad rows: %v, want one on line %d with %s", table.LeftOut, table.Bad, badLine, bad)
	}
}

// TestJSONLErrors checks the errors for whole files of JSONL.
func TestJSONLErrors(t *testing.T) {
	for _, test := range []struct {
		name, file, content string
		columns             []string
		want                string
	}{
		{name: "half an array", file: "a.json", content: "\n [\n{\"tokens\":\"a\",\"tags\":\"b\"},\n{", want: "line 3: not a JSON array of objects: unexpected EOF"},
		{name: "an array and more", file: "a.json", content: "[{\"tokens\":\"a\",\"tags\":\"b\"}]\n{}", want: "not a JSON array of objects: something follows the array"},
		{name: "an empty array", file: "a.json", content: "[]", want: "it has only empty lines"},
		{name: "an object on several lines", file: "a.json", content: "{\n\"tokens\":\"a\"}", want: "its first JSON object has several lines, but each line must be one object: convert it with jq -c . FILE > FILE.jsonl"},
		{name: "unknown keys", file: "a.ndjson", content: `{"id":1,"tokens":"a"}`, want: `line 1 has the keys "id", "tokens", and none of them is tags, ner_tags: set data.columns to the keys of the token list and the tag list`},
		{name: "numbers of keys", file: "a.jsonl", content: `{"tokens":"a","tags":"b"}`, columns: []string{"tokens", "2"}, want: "data.columns must be keys, because the keys of JSONL have no order, got the number 2"},
		{name: "a long line", file: "a.jsonl", content: "{\"tokens\":\"a\",\"tags\":\"b\"}\n{\"tokens\":\"" + strings.Repeat("a", maxRow) + "\"}", want: "line 2: the row that starts here has more than 4 MiB"},
		{name: "too many keys", file: "a.jsonl", content: `{"a":"a"}`, columns: []string{"a", "b", "c"}, want: "data.columns must name 2 columns, the token list and the tag list, got"},
		{name: "no line", file: "a.jsonl", content: "\n\n", want: "only empty lines"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := writeFile(t, test.file, test.content)
			_, err := Read(path, Options{Columns: test.columns, Known: taggedNames})
			checkError(t, err, path, test.want)
		})
	}
	path := writeFile(t, "a.jsonl", "{}\n")
	_, err := ReadParallel([]string{path, path}, Options{Known: taggedNames})
	checkError(t, err, path, "has sources and answers in one file")
}

func TestJSONLIsWrittenBack(t *testing.T) {
	for _, test := range []struct {
		name, file, content, want string
		columns                   []string
		bad                       int
	}{
		{name: "JSONL", file: "a.jsonl", content: mark + " {\"id\": 1e400, \"text\":\"<a> \\u00e9\", \"x\":{ } } \r\n\r\n{\"text\":\"b\"}", want: mark + " {\"id\": 1e400, \"text\":\"<a> \\u00e9\", \"x\":{ },\"answer\":\"<a>! é!\",\"n\":-0.5 } \r\n{\"text\":\"b\",\"answer\":\"b!\",\"n\":-0.5}\r\n"},
		{name: "bad JSONL", file: "a.json", content: "x\n{\"Text\":1}\n{ }\n{\"text\":{\"a\":2} }\n[1]\n", want: "x\n{\"Text\":1,\"answer\":\"1!\",\"n\":-0.5}\n{\"answer\":null,\"n\":null }\n{\"text\":{\"a\":2},\"answer\":null,\"n\":null }\n[1]\n", bad: 4},
		{name: "keys that are taken", file: "a.jsonl", content: "{\"text\":\"a\"}\nx\n{\"text\":\"b\",\"Answer\":\"\",\"predicted_answer\":1}\n", want: "{\"text\":\"a\",\"predicted_predicted_answer\":\"a!\",\"n\":-0.5}\nx\n{\"text\":\"b\",\"Answer\":\"\",\"predicted_answer\":1,\"predicted_predicted_answer\":\"b!\",\"n\":-0.5}\n", bad: 1},
		{name: "UTF-16", file: "a.jsonl", content: inUTF16(binary.BigEndian, "{\"text\":\"ä\"}\n"), want: inUTF16(binary.BigEndian, "{\"text\":\"ä\",\"answer\":\"ä!\",\"n\":-0.5}\n")},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, bad := copyRows(t, writeFile(t, test.file, test.content), Options{Columns: test.columns, Known: taggedNames[:1]}, exclaimed, "answer", "n")
			if got != test.want || len(bad) != test.bad {
				t.Errorf("got %q\nwant %q; bad rows %v, want %d", got, test.want, bad, test.bad)
			}
		})
	}
}

// exclaimed returns two values for a source: its tokens with exclamation marks, and a number.
func exclaimed(source string) []any {
	return []any{strings.ReplaceAll(source, " ", "! ") + "!", json.Number("-0.5")}
}

// A key with thousands of prefixes costs neither memory nor time.
func TestTakenKeys(t *testing.T) {
	var lines strings.Builder
	for _, n := range []int{0, 1, 3000, 3001} {
		fmt.Fprintf(&lines, "{%q: 1}\n", strings.Repeat(predicted, n)+"answer")
	}
	taken, err := takenKeys(writeFile(t, "a.jsonl", lines.String()), "", []string{"answer"})
	if want := []string{"answer", "predicted_answer"}; err != nil || !slices.Equal(taken, want) {
		t.Errorf("got %.100q, error %v, want %q", taken, err, want)
	}
}

// The rows of a JSON object may be in an array, and questions in paragraphs and articles.
func TestRowsInAnObject(t *testing.T) {
	known := []Column{{Role: "text", Names: []string{"question"}}, {Role: "context", Names: []string{"context"}}}
	const want = `[["a" "x"] ["b" "x"] ["c" "y"]]`
	for _, content := range []string{
		`{"data": [{"question": "a", "context": "x"}, {"question": "b", "context": "x"}, {"question": "c", "context": "y"}], "version": "1"}`,
		`{"version": "1.1", "data": [{"paragraphs": [{"context": "x", "qas": [{"question": "a"}, {"question": "b"}]}]}, {"context": "y", "qas": [{"question": "c", "context": "z"}]}]}`,
		"\n{\n \"data\":\n [{\"context\": \"x\", \"qas\": [{\"question\": \"a\"},\n null, {\"question\": \"b\"}]}, {\"context\": \"y\", \"qas\": [{\"question\": \"c\"}]}, {\"qas\": [{\"question\": \"d\"}]}]}",
	} {
		got := must.Get(Read(writeFile(t, "a.json", content), Options{Known: known, SkipBad: true}))(t)
		if rows, _ := contents(got); fmt.Sprintf("%q", rows) != want {
			t.Errorf("%s: got %q, want %s", content, rows, want)
		}
	}
	_, err := Read(writeFile(t, "a.json", "{\n\"data\": [\n{\"question\": \"a\", \"context\": \"x\"}"), Options{Known: known})
	must.Fail(t, err, "line 3: not a JSON array of objects: unexpected EOF")
}

// A column may have values of any form, which are taken as JSON, and may be empty.
func TestRawColumns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	must.Do(t, os.WriteFile(path, []byte(`{"text": "a", "answers": {"text": ["b c"], "at": [1]}}
{"text": "b", "answers": "c"}
{"text": "c", "answers": null}
{"text": "d", "answers": ["e", "f g"]}
`), 0o666))
	var got []string
	table := must.Get(Read(path, Options{Known: []Column{{Role: "text", Names: []string{"text"}}, {Role: "answer", Names: []string{"answers"}, Empty: true, Raw: true}},
		Check: func(fields []string) error {
			got = append(got, fields[1])
			fields[1] = "x"
			return nil
		}}))(t)
	if want := []string{`{"text": ["b c"], "at": [1]}`, "c", "", `["e", "f g"]`}; !slices.Equal(got, want) || table.Len() != 4 || table.Field(2, 1) != "x" {
		t.Errorf("got %q, want %q", got, want)
	}
}
