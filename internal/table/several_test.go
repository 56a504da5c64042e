package table

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// TestSeveral reads rows with any number of labels. Where a row has one label, such rows end the reading.
func TestSeveral(t *testing.T) {
	text := Column{Role: "text", Names: []string{"text"}}
	several, one := Column{Role: "labels", Names: []string{"label"}, Several: "|"}, Column{Role: "label", Names: []string{"label"}, One: true}
	for _, test := range []struct{ file, content, want, bad, one string }{
		{file: "a.jsonl", content: `{"text":"a","label":["x y","z"]}` + "\n" + `{"text":"b","label":[]}` + "\n" + `{"text":"c","label":"x|z"}` + "\n" + `{"text":"d","label":""}`,
			want: `[["a" "x y|z"] ["b" "|"] ["c" "x|z"] ["d" "|"]]`, one: `line 1: the value of "label" is an array of 2 labels, but each row must have one here`},
		{file: "a.jsonl", content: `{"text":"a","label":["x"]}` + "\n" + `{"text":"b","label":[]}` + "\n" + `{"text":"c","label":null}`, want: `[["a" "x"] ["b" "|"]]`,
			bad: `line 3: the value of "label" is null: a row without labels has an empty array`, one: "line 2: the value of \"label\" is an array of 0 labels"},
		{file: "a.jsonl", content: `{"text":"a","label":["x"]}` + "\n" + `{"text":"b","label":["y|z"]}`, want: `[["a" "x"]]`,
			bad: `line 2: the value of "label" is an array of the label "y|z", which contains "|": choose another separator of labels`},
		{file: "a.jsonl", content: `{"text":"a","label":["x"]}` + "\n" + `{"text":"b","label":["y",""]}`, want: `[["a" "x"]]`,
			bad: `line 2: the value of "label" is an array, whose elements are labels; an element must not be empty: ""`},
		{file: "a.csv", content: "text,label\na,x|y\nb,\nc,x\n", want: `[["a" "x|y"] ["b" "|"] ["c" "x"]]`},
		{file: "a.csv", content: "text,label\na,\"['x', \"\"y's\"\"]\"\nb,[]\nc,\"[\"\"\\u00e9\"\"]\"\nd,[x]\n", want: `[["a" "x|y's"] ["b" "|"] ["c" "é"] ["d" "[x]"]]`,
			one: "line 2: the label (column 2) has 2 labels, but each row must have one here"},
		{file: "a.tsv", content: "text\tlabel\na\t['x' 'y'\t\nb\t['x' 'y']\nc\t[0 3]\n", want: `[["a" "['x' 'y'"] ["b" "x|y"] ["c" "0|3"]]`,
			one: "line 3: the label (column 2) has 2 labels, but each row must have one here"},
		{file: "a.txt", content: "__label__x a\n__label__x __label__y b\n", want: `[["a" "x"] ["b" "x|y"]]`, one: "line 2: it has 2 labels, but each row must have one here"},
		{file: "a.txt", content: "__label__x a\n__label__x|y b\n", want: `[["a" "x"]]`, bad: `line 2: it has the label "x|y", which contains "|": choose another separator of labels`},
	} {
		path := writeFile(t, test.file, test.content)
		got := must.Get(Read(path, Options{Known: []Column{text, several}, SkipBad: true}))(t)
		rows, _ := contents(got)
		if s := fmt.Sprintf("%q", rows); s != test.want {
			t.Errorf("%q: got %s, want %s", test.content, s, test.want)
		}
		bad := ""
		if got.LeftOut > 0 {
			bad = got.Reasons()
		}
		if bad != test.bad {
			t.Errorf("%q: got bad rows %q, want %q", test.content, bad, test.bad)
		}
		_, err := Read(path, Options{Known: []Column{text, one}, SkipBad: true})
		if test.one == "" {
			must.Do(t, err)
			continue
		}
		if checkError(t, err, path, test.one); !errors.Is(err, ErrSeveral) {
			t.Errorf("%q: the error %v isn't ErrSeveral", test.content, err)
		}
	}
}

// TestLists reads tokens and tags from lists in fields.
func TestLists(t *testing.T) {
	path := writeFile(t, "a.csv", "tokens,ner_tags\n\"['Ann', 'sings', ']']\",\"[1, 0, 0]\"\nAnn sings,1 0\n")
	known := []Column{{Role: "token list", Names: []string{"tokens"}}, {Role: "tag list", Names: []string{"ner_tags"}}}
	got := must.Get(Read(path, Options{Known: known, Tagged: true}))(t)
	rows, _ := contents(got)
	if s, want := fmt.Sprintf("%q", rows), `[["Ann sings ]" "1 0 0"] ["Ann sings" "1 0"]]`; s != want || len(got.Notes) != 1 {
		t.Errorf("got %s and notes %q, want %s and one note", s, got.Notes, want)
	}
	for rows, refused := range map[string]bool{strings.Repeat("Ann\tB\n.\tO\n\n", 10): true, strings.Repeat("Ann\tB\n.\tO\n\n", 9): false, strings.Repeat("Ann\tB\n", 20) + "Ann .\tB O\n": false} {
		_, err := Read(writeFile(t, "a.txt", rows), Options{Known: known, Tagged: true})
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "let the file's name end in .conll") {
			t.Errorf("%.20q, %d bytes: got the error %v, want one: %t", rows, len(rows), err, refused)
		}
	}
}
