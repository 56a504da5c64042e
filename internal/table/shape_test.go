package table

import (
	"fmt"
	"strings"
	"testing"
)

// TestShape checks files in forms that other programs write: fields too many, names of rows, quotes in TSV, and lines
// above the header. The wanted columns are a text and a label.
func TestShape(t *testing.T) {
	ordinary := strings.Repeat("a text\tyes\n", 3)
	for _, test := range []struct {
		name, file, content string
		o                   Options // without Known
		want                string  // rows, formatted with %q
		bad                 string  // reasons of bad rows
		notes               string
	}{
		{name: "a tab in a text", file: "a.tsv", content: "text\tlabel\na\tb\tyes\nc\tno\n", want: `[["c" "no"]]`, bad: "line 2: it has 3 fields, but the header has 2: a text can't have a tab; make it a space"},
		{name: "a tab in a text, no header", file: "a.tsv", content: "a\tb\tyes\n" + ordinary, o: Options{Columns: []string{"1", "2"}}, want: `[["a text" "yes"] ["a text" "yes"] ["a text" "yes"]]`, bad: "line 1: it has 3 fields, but other rows have 2: a text can't have a tab; make it a space"},
		{name: "a comma in a text, no header", file: "a.csv", content: "a,yes\nb, and c,no\nd,no\n", want: `[["a" "yes"] ["d" "no"]]`, bad: `line 2: it has 3 fields, but other rows have 2: put quotes around fields that contain ','`},
		{name: "an empty last field", file: "a.csv", content: "text,label\na,yes,\nb,no,\n", want: `[["a" "yes"] ["b" "no"]]`},
		{name: "an empty last field in TSV", file: "a.tsv", content: "text\tlabel\t\na\tyes\t\nb\tno\t\n", want: `[["a" "yes"] ["b" "no"]]`},

		{name: "write.table", file: "a.tsv", content: "text\tlabel\n1\ta\tyes\n2\tb\tno\n", want: `[["a" "yes"] ["b" "no"]]`, notes: "the first column has names of rows, because the header has one field less than every row"},
		{name: "write.table with quotes", file: "a.txt", content: "\"text\"\t\"label\"\n\"1\"\t\"a \"\"b\"\"\"\t\"yes\"\n\"2\"\t\"c\"\t\"no\"\n", want: `[["a \"b\"" "yes"] ["c" "no"]]`,
			notes: "the first column has names of rows, because the header has one field less than every row|the fields between tabs are in quotes, which are no part of them; with quotes no, they are"},
		{name: "every row has a comma", file: "a.csv", content: "text,label\nx,a,yes\nx,b,no\n", bad: "lines 2, 3: it has 3 fields, but the header has 2"}, // the same name twice is none
		{name: "names of rows, by number", file: "a.tsv", content: "word\tsound\n1\ta\tb\n2\tb\tc\n", o: Options{Columns: []string{"2", "3"}}, want: `[["a" "b"] ["b" "c"]]`, notes: "the first column has names of rows, because the header has one field less than every row"},
		{name: "names of rows, unknown names", file: "a.tsv", content: "word\tsound\n1\ta\tb\n2\tb\tc\n", bad: "it has 3 columns, but no header with known names"},

		{name: "quotes around all fields", file: "a.tsv", content: "\"text\"\t\"label\"\n\"a\"\t\"yes\"\n\"b \"\"c\"\"\"\t\"no\"\n", want: `[["a" "yes"] ["b \"c\"" "no"]]`, notes: "the fields between tabs are in quotes, which are no part of them; with quotes no, they are"},
		{name: "quotes kept", file: "a.tsv", content: "text\tlabel\n\"a\"\tyes\n\"b\"\tno\n\"c\"\tno\n", o: Options{Quotes: "no"}, want: `[["\"a\"" "yes"] ["\"b\"" "no"] ["\"c\"" "no"]]`},
		{name: "quotes in a column", file: "a.tsv", content: "text\tlabel\n\"a\tb\"\tyes\n\"b\"\tno\n\"c\"\tno\n\"d\ne\"\tno\n", want: `[["a\tb" "yes"] ["b" "no"] ["c" "no"] ["d\ne" "no"]]`, notes: "the fields between tabs are in quotes, which are no part of them; with quotes no, they are"},
		{name: "texts that begin with quotes", file: "a.tsv", content: "text\tlabel\n\"a\" b\tyes\n\"b\"\tno\n\"c\"\tno\n", want: `[["\"a\" b" "yes"] ["\"b\"" "no"] ["\"c\"" "no"]]`},
		{name: "few quotes", file: "a.tsv", content: "text\tlabel\n\"a\"\tyes\nb\tno\n\"c\"\tno\n", want: `[["\"a\"" "yes"] ["b" "no"] ["\"c\"" "no"]]`},

		{name: "Excel's separator", file: "a.csv", content: "sep=;\ntext;label\na, b, c;yes\n", want: `[["a, b, c" "yes"]]`, notes: "the header is in line 2: left out 1 row before it"},
		{name: "Excel's separator, no header", file: "a.csv", content: "sep=;\r\na, b;yes\r\nc;no\r\n", o: Options{Header: "no"}, want: `[["a, b" "yes"] ["c" "no"]]`, notes: "left out the first line, which names the separator"},
		{name: "a title", file: "a.csv", content: "Mails of May\n\ntext,label\na,yes\nb,no\n", want: `[["a" "yes"] ["b" "no"]]`, notes: "the header is in line 3: left out 1 row before it"},
		{name: "comments", file: "a.tsv", content: "# made today\n# by a program\ntext\tlabel\na\tyes\n", want: `[["a" "yes"]]`, notes: "the header is in line 3: left out 2 rows before it"},
		{name: "a title, columns by name", file: "a.csv", content: "Mails of May\nbody,queue\na,yes\n", o: Options{Columns: []string{"body", "queue"}}, want: `[["a" "yes"]]`, notes: "the header is in line 2: left out 1 row before it"},
		{name: "unknown names", file: "a.csv", content: "review,stars\na good film,5\nbad,1\n", want: `[["review" "stars"] ["a good film" "5"] ["bad" "1"]]`,
			notes: `line 1 is read as a row, but looks like a header: (1) "review", (2) "stars"; with header yes, it is one`},
		{name: "unknown names, by number", file: "a.csv", content: "stars;review\n5;a good film\n1;a bad film\n", o: Options{Columns: []string{"2", "1"}}, want: `[["review" "stars"] ["a good film" "5"] ["a bad film" "1"]]`,
			notes: `line 1 is read as a row, but looks like a header: (1) "stars", (2) "review"; with header yes, it is one`},
		{name: "unknown names, header yes", file: "a.csv", content: "review,stars\na good film,5\nbad,1\n", o: Options{Header: "yes"}, want: `[["a good film" "5"] ["bad" "1"]]`},
		{name: "no header", file: "a.csv", content: "good,pos\na good film,pos\nbad,neg\na bad film,neg\n", want: `[["good" "pos"] ["a good film" "pos"] ["bad" "neg"] ["a bad film" "neg"]]`},
		{name: "fastText", file: "a.txt", content: "__label__yes a, b\n\n__label__no c\n__label__no __label__yes d\ne\n", want: `[["a, b" "yes"] ["c" "no"] ["d" "no yes"]]`,
			bad: "line 5: it doesn't begin with __label__, as the first line does"},
		{name: "bars", file: "a.txt", content: "text|label\na, b|yes\n\"c|d\"|no\n", want: `[["a, b" "yes"] ["c|d" "no"]]`},
		{name: "a bar in TSV", file: "a.tsv", content: "a|b\tyes\n", want: `[["a|b" "yes"]]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := test.o
			o.Known, o.SkipBad = pairNames, true
			got, err := Read(writeFile(t, test.file, test.content), o)
			if err != nil {
				if test.want != "" || test.bad == "" || !strings.Contains(err.Error(), test.bad) {
					t.Fatal(err)
				}
				return
			}
			rows, _ := contents(got)
			if s := fmt.Sprintf("%q", rows); s != test.want {
				t.Errorf("got %s, want %s", s, test.want)
			}
			bad := ""
			if got.LeftOut > 0 {
				bad = got.Reasons()
			}
			if bad != test.bad {
				t.Errorf("got bad rows %q, want %q", bad, test.bad)
			}
			if notes := strings.Join(got.Notes, "|"); notes != test.notes {
				t.Errorf("got the notes %q, want %q", notes, test.notes)
			}
		})
	}
}

// TestForm checks the form in which rows are written back.
func TestForm(t *testing.T) {
	for _, test := range []struct{ file, content, want string }{
		{"a.txt", "__label__yes a b\n", "TSV"}, {"a.tsv", "\"text\"\t\"label\"\n", "TSV"}, {"a.tsv", "a|b\tc\n", "TSV"}, {"a.csv", "sep=;\na;b\n", "CSV"},
		{"a.txt", "text|label\na|b\n", "CSV"}, {"a.json", "[{}]", "JSONL"}, {"a.conll", "a O\n", "CoNLL"},
	} {
		if got, err := Form(writeFile(t, test.file, test.content), Options{Known: pairNames, Tagged: true}); err != nil || got != test.want {
			t.Errorf("%s with %q: got %s, %v, want %s", test.file, test.content, got, err, test.want)
		}
	}
}
