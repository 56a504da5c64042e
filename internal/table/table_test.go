package table

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/internal/textfile"
)

// pairNames are two known columns.
var pairNames = []Column{{Role: "text", Names: []string{"source", "text"}}, {Role: "label", Names: []string{"target", "label"}}}

func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

// contents returns the rows of a table, and the line on which each row starts.
func contents(t *Table) (rows [][]string, lines []int) {
	for r := range t.Len() {
		var fields []string
		for c := range t.fields {
			fields = append(fields, t.Field(r, c))
		}
		rows, lines = append(rows, fields), append(lines, t.Line(r))
	}
	return rows, lines
}

// inUTF16 returns s in UTF-16, with a byte-order mark.
func inUTF16(order binary.AppendByteOrder, s string) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune(mark + s)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

// zipped returns s in gzip.
func zipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.String()
}

func TestRead(t *testing.T) {
	many := strings.Repeat("x\ty\n", 200)
	for _, test := range []struct {
		name, file, content string
		encoding            string
		columns             []string
		head                string // Options.Header
		want                string // rows, formatted with %q; "" for any rows
		lines               string
		header              string
		leftOut             int
	}{
		{name: "TSV", file: "a.tsv", content: "a\tb\nc\td\n", want: `[["a" "b"] ["c" "d"]]`, lines: "[1 2]"},
		{name: "last line without a line end", file: "a.tsv", content: "a\tb\nc\td", want: `[["a" "b"] ["c" "d"]]`},
		{name: "one row", file: "a.tsv", content: "a\tb", want: `[["a" "b"]]`},
		{name: "quote in TSV", file: "a.tsv", content: "5\" disk\tb\n\"c\td\n", want: `[["5\" disk" "b"] ["\"c" "d"]]`},
		{name: "Windows line ends", file: "a.tsv", content: "a\tb\r\nc\td\r\n", want: `[["a" "b"] ["c" "d"]]`},
		{name: "empty lines", file: "a.tsv", content: "\r\n\na\tb\n\nc\td\n\n", want: `[["a" "b"] ["c" "d"]]`, lines: "[3 5]"},
		{name: "more columns than wanted", file: "a.tsv", columns: []string{"1", "2"}, content: "a\tb\t\t\xff\n", want: `[["a" "b"]]`},
		{name: "spaces stay", file: "a.tsv", content: " a \tb\n", want: `[[" a " "b"]]`},
		{name: ".tab", file: "a.TAB", content: "a,b\tb\n", want: `[["a,b" "b"]]`},
		{name: ".txt", file: "a.txt", content: "a,b\tb\n", want: `[["a,b" "b"]]`},
		{name: "another ending, a tab", file: "a.dat", content: "a,5\"\tb\n", want: `[["a,5\"" "b"]]`},
		{name: "another ending, a comma", file: "a", content: "\"a;;\",b\n", want: `[["a;;" "b"]]`},
		{name: "another ending, a semicolon", file: "a.data", content: "a;b\n", want: `[["a" "b"]]`},

		{name: "CSV", file: "a.csv", content: "a,b\nc,d\n", want: `[["a" "b"] ["c" "d"]]`, lines: "[1 2]"},
		{name: "quotes, commas and newlines", file: "a.csv", content: "\"a \"\"b\"\",\nc\",d\r\n\"\n\ne\",f\n", want: `[["a \"b\",\nc" "d"] ["\n\ne" "f"]]`, lines: "[1 3]"},
		{name: "semicolons", file: "a.csv", content: "\"a,b,c\";b\nc,d;e\n", want: `[["a,b,c" "b"] ["c,d" "e"]]`},
		{name: "quoted newlines before the separator", file: "a.csv", content: "\"a,\nb,\nc\";b\n", want: `[["a,\nb,\nc" "b"]]`},
		{name: "tabs in CSV", file: "a.csv", content: "a\tb,c\n", want: `[["a\tb" "c"]]`},
		{name: "rows of different lengths", file: "a.csv", content: "a,b\nc,d,e\n", want: `[["a" "b"] ["c" "d"]]`},

		{name: "mark", file: "a.tsv", content: mark + "a\tb\n", want: `[["a" "b"]]`},
		{name: "mark before a quote", file: "a.csv", content: mark + "\"a,\",b\n", want: `[["a," "b"]]`},
		{name: "mark before a header", file: "a.csv", content: mark + "label,text\r\nb,a\r\n", want: `[["a" "b"]]`, header: "[label text]"},
		{name: "UTF-16 LE", file: "a.tsv", content: inUTF16(binary.LittleEndian, "ä\t𝄞\r\nc\td"), want: `[["ä" "𝄞"] ["c" "d"]]`},
		{name: "UTF-16 BE", file: "a.csv", content: inUTF16(binary.BigEndian, "\"ä\";𝄞\n"), want: `[["ä" "𝄞"]]`},

		{name: "gzip", file: "a.tsv.gz", content: zipped("a,b\tb\nc\td\n"), want: `[["a,b" "b"] ["c" "d"]]`, lines: "[1 2]"},
		{name: "gzip of CSV", file: "a.CSV.GZ", content: zipped("a,b\tc\n"), want: `[["a" "b\tc"]]`},
		{name: "windows-1252", file: "a.csv", content: "gr\xfcn,b\n", encoding: "windows-1252", want: `[["grün" "b"]]`},
		{name: "a byte that windows-1252 lacks", file: "a.tsv", content: many + "a\x81\tb\n", encoding: "windows-1252", leftOut: 1},

		{name: "known header", file: "a.csv", content: "id, Label ,TEXT\n1,b,a\n", want: `[["a" "b"]]`, lines: "[2]", header: "[id  Label  TEXT]"},
		{name: "the likelier name", file: "a.csv", content: "text,source,label\n1,a,b\n", want: `[["a" "b"]]`, header: "[text source label]"},
		{name: "half a known header is a row", file: "a.csv", content: "text,kind\na,b\n", want: `[["text" "kind"] ["a" "b"]]`},
		{name: "half a known header, twice", file: "a.csv", content: "text,text\na,b\n", want: `[["text" "text"] ["a" "b"]]`},
		{name: "by number", file: "a.csv", content: "1,b,a\n", columns: []string{"3", "2"}, want: `[["a" "b"]]`},
		{name: "by number under a known header", file: "a.csv", content: "id,label,text\n1,b,a\n", columns: []string{"3", "2"}, want: `[["a" "b"]]`, header: "[id label text]"},
		{name: "by number under an unknown header", file: "a.csv", content: "id,kind,text\n1,b,a\n", columns: []string{"3", "2"}, want: `[["text" "kind"] ["a" "b"]]`},
		{name: "by name", file: "a.csv", content: "Id,kind,text\n1,b,a\n", columns: []string{"kind", "ID"}, want: `[["b" "1"]]`, header: "[Id kind text]"},
		{name: "by name and number", file: "a.csv", content: "id,kind\n1,b\n", columns: []string{"kind", "1"}, want: `[["b" "1"]]`, header: "[id kind]"},

		{name: "a header with unknown names", file: "a.csv", head: "yes", content: mark + "MAIL,QUEUE\na,b\n", want: `[["a" "b"]]`, lines: "[2]", header: "[MAIL QUEUE]"},
		{name: "an answered known header", file: "a.csv", head: "yes", content: "id,label,text\n1,b,a\n", want: `[["a" "b"]]`, header: "[id label text]"},
		{name: "an answered header by number", file: "a.csv", head: "yes", content: "id,kind,text\n1,b,a\n", columns: []string{"3", "2"}, want: `[["a" "b"]]`, header: "[id kind text]"},
		{name: "a known header that is a row", file: "a.csv", head: "no", content: "label,text\nb,a\n", want: `[["label" "text"] ["b" "a"]]`},
		{name: "a known header by number that is a row", file: "a.csv", head: "no", content: "id,label,text\n1,b,a\n", columns: []string{"3", "2"}, want: `[["text" "label"] ["a" "b"]]`},
		{name: "a short first row", file: "a.csv", content: "title\n" + strings.Repeat("x,y\n", 200), leftOut: 1},

		{name: "a header in the middle", file: "a.tsv", content: "text\tlabel\n" + many + "text\tlabel\n", leftOut: 1, header: "[text label]"},
		{name: "a comma without quotes", file: "a.csv", content: "text,label\n" + strings.Repeat("a,b\n", 199) + "a, b,c\na,b,\n", leftOut: 1, header: "[text label]"},
		{name: "bad rows under 1 %", file: "a.tsv", content: many + "only one\n\tempty\n" + many, leftOut: 2},
		{name: "invalid UTF-8 in a row", file: "a.tsv", content: many + "caf\xe9\tb\n", leftOut: 1},
		{name: "NUL in a late row", file: "a.tsv", content: strings.Repeat(many, 100) + "a\x00\tb\n", leftOut: 1},
		{name: "half a character in UTF-16", file: "a.tsv", content: inUTF16(binary.LittleEndian, many) + "\x00\xd8\t\x00b\x00", leftOut: 1},
		{name: "half a unit in UTF-16", file: "a.tsv", content: inUTF16(binary.LittleEndian, many+"a\t") + "b", leftOut: 1},
		{name: "bare quote", file: "a.csv", content: strings.ReplaceAll(many, "\t", ",") + "5\" disk,b\n", leftOut: 1},
		{name: "text after a quote", file: "a.csv", content: strings.ReplaceAll(many, "\t", ",") + "\"a\"b,c\n", leftOut: 1},
		{name: "open quote at the end", file: "a.csv", content: strings.ReplaceAll(many, "\t", ",") + "\"a,b\nc,d", leftOut: 2},
		{name: "bad first row", file: "a.csv", content: "\"a\"b,c\n" + strings.ReplaceAll(many, "\t", ","), leftOut: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := writeFile(t, test.file, test.content)
			table := must.Get(Read(path, Options{Columns: test.columns, Known: pairNames, Header: test.head, Encoding: test.encoding}))(t)
			rows, lines := contents(table)
			if got := fmt.Sprintf("%q", rows); test.want != "" && got != test.want {
				t.Errorf("rows %s, want %s", got, test.want)
			}
			if got := fmt.Sprint(lines); test.lines != "" && got != test.lines {
				t.Errorf("lines %s, want %s", got, test.lines)
			}
			if got := fmt.Sprint(table.Header); got != "["+strings.Trim(test.header, "[]")+"]" {
				t.Errorf("header %s, want %s", got, test.header)
			}
			if table.LeftOut != test.leftOut || (len(table.Bad) > 0) != (test.leftOut > 0) {
				t.Errorf("%d rows left out, want %d; the first bad rows are %v", table.LeftOut, test.leftOut, table.Bad)
			}
			if test.leftOut > 0 && table.Len()%200 != 0 {
				t.Errorf("got %d good rows, want a multiple of 200", table.Len())
			}
			if want := fmt.Sprintf("%x", sha256.Sum256([]byte(test.content))); len(table.SHA256) != 1 || table.SHA256[0] != want {
				t.Errorf("SHA-256 %s, want %s", table.SHA256, want)
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("a,b\n", 100)
	for _, test := range []struct {
		name, file, content string
		columns             []string
		known               []Column
		head                string // Options.Header
		want                string
	}{
		{name: "empty", file: "a.tsv", want: "it is empty"},
		{name: "only a mark", file: "a.tsv", content: mark, want: "only empty lines"},
		{name: "only empty lines", file: "a.csv", content: "\n\r\n", want: "only empty lines"},
		{name: "only a header", file: "a.csv", content: "text,label\n", want: "a header but no rows"},
		{name: "half of gzip", file: "a.tsv.gz", content: zipped(many)[:25], want: "its gzip data are damaged or incomplete: unexpected EOF"},
		{name: "half of gzip with CSV", file: "a.csv.gz", content: zipped(strings.Repeat("\""+many+"\",", 1000))[:300], want: "its gzip data are damaged or incomplete"},
		{name: "long row in gzip", file: "a.tsv.gz", content: zipped("a\tb\n" + strings.Repeat("a", maxRow+1)), want: "line 2: the row that starts here has more than 4 MiB"},
		{name: "xlsx", file: "a.csv", content: "PK\x03\x04\x00", want: "save the sheet as CSV"},
		{name: "binary", file: "a.csv", content: "\x7fELF\x02\x01\x01\x00", want: "it has NUL bytes"},
		{name: "UTF-16 without a mark", file: "a.csv", content: "a\x00,\x00b\x00\n\x00", want: "UTF-16 without a byte-order mark"},
		{name: "UTF-32", file: "a.csv", content: "\xff\xfe\x00\x00a\x00\x00\x00", want: "it has NUL bytes"},
		{name: "Latin-1", file: "a.csv", content: "text,label\ncaf\xe9,b\n", want: "it has no good row, only 1 bad: line 2: the text (column 1) is not UTF-8: the byte at offset 3 (from 0) is no part of a character: " + textfile.Advice},
		{name: "old Mac", file: "a.csv", content: "a,b\rc,d\r", want: `its lines end in \r only`},
		{name: "one column", file: "a.csv", content: "abc\n", want: `line 1: the label (column 2) is missing: the row has only 1 (fields between ',')`},
		{name: "one column of TSV", file: "a.tsv", content: "a,bc\n", want: `line 1: the label (column 2) is missing: the row has only 1 (fields between tabs)`},
		{name: "one empty label of 100", file: "a.csv", content: many[4:] + "a,\n" + "b, ", want: "2 of 101 rows are bad; without data.skip_bad, heed leaves out at most one in a hundred: lines 100, 101: the label (column 2) is empty"},
		{name: "more bad rows than the error lists", file: "a.csv", content: many + strings.Repeat("a,\n", 90), want: "lines 101, 102, 103, 104, 105: the label (column 2) is empty; …"},
		{name: "open quote", file: "a.csv", content: "\"" + many, want: `it has no good row, only 100 bad: line 1: not CSV: extraneous or missing "`},
		{name: "open quote and rows after", file: "a.csv", content: "\"" + many + "\"c\",d\n" + many, want: `101 of 201 rows are bad`},
		{name: "long line", file: "a.tsv", content: "a\tb\n" + strings.Repeat("a", maxRow+1) + "\tb\n", want: "line 2: the row that starts here has more than 4 MiB"},
		{name: "long row", file: "a.csv", content: "a,b\n\"c\nd\",\"e\n\"\n\"" + strings.Repeat(many, maxRow/len(many)+20), want: "line 5: the row that starts here has more than 4 MiB"},
		{name: "no such column", file: "a.csv", content: "id,text\na,b\n", columns: []string{"text", "label"}, want: `column "label" isn't in the header, which has (1) "id", (2) "text"`},
		{name: "column twice", file: "a.csv", content: "text,Text\na,b\n", columns: []string{"1", "text"}, want: `column "text" is in the header twice, so use its number instead: the header has (1) "text", (2) "Text"`},
		{name: "known column twice", file: "a.csv", content: "text,Text,label\na,b,c\n", want: `column "text" is in the header twice`},
		{name: "many columns", file: "a.csv", content: "Id,date,From,body,queue\n1,b,c,d,e\n", want: `it has 5 columns, but no header with known names. The first row is (1) "Id", (2) "date", (3) "From", (4) "body", (5) "queue": choose the text and the label, as in data.columns body,queue if this row is a header, or as in data.columns 4,5 if it isn't`},
		{name: "one known name", file: "a.csv", content: "id,label,body\n1,b,a\n", want: `as in data.columns body,label if this row is a header, or as in data.columns 3,2 if it isn't`},
		{name: "many columns without names", file: "a.csv", content: "1,2024,\"a, b\",x\n", want: `choose the text and the label, as in data.columns 3,4`},
		{name: "many columns, a name twice", file: "a.csv", content: "x,text,kind,Kind\n1,b,a,c\n", want: `choose the text and the label, as in data.columns 2,4`},
		{name: "many columns, no name", file: "a.csv", content: "x,kind,\n1,b,a\n", want: `choose the text and the label, as in data.columns 2,3`},
		{name: "many columns, a header", file: "a.csv", head: "yes", content: "id,date,body,queue\n1,b,a,c\n", want: `choose the text and the label, as in data.columns body,queue`},
		{name: "many columns, no header", file: "a.csv", head: "no", content: "id,label,text\n1,b,a\n", want: `choose the text and the label, as in data.columns 3,2`},
		{name: "a name without a header", file: "a.csv", head: "no", content: "id,label,text\n1,b,a\n", columns: []string{"text", "2"}, want: `data.header is no, so data.columns must be numbers, got "text"`},
		{name: "one column for another", file: "a.csv", content: "text,label\na,b\n", columns: []string{"text", "text"}, want: `data.columns must be different columns, got text, text`},
		{name: "nearly a column", file: "a.csv", content: "id,Label\na,b\n", columns: []string{"id", "lable"}, want: `column "lable" isn't in the header, which has (1) "id", (2) "Label"; did you mean Label?`},
		{name: "TSV with semicolons", file: "a.txt", content: "id;body;queue\n1;a;b\n", columns: []string{"body", "queue"}, want: `column "body" isn't in the header, which has (1) "id;body;queue": if its columns are between commas or semicolons, let the file's name end in .csv`},
		{name: "wide header", file: "a.csv", content: strings.Repeat("a,", 30) + "b\n", columns: []string{"c", "d"}, want: `(20) "a", and 11 more`},
		{name: "names and a bad first row", file: "a.csv", content: "\"a\"b,c\nd,e\n", columns: []string{"a", "b"}, want: "line 1: not CSV"},
		{name: "column 0", file: "a.csv", content: many, columns: []string{"0", "1"}, want: "numbers start at 1, got 0"},
		{name: "wrong number of columns", file: "a.csv", content: many, columns: []string{"1", "2", "3"}, want: `data.columns must name 2 columns, the text and the label, got ["1" "2" "3"]`},
		{name: "no column", file: "a.csv", content: many, columns: []string{}, want: `data.columns must name 2 columns, the text and the label, got []`},
		{name: "nothing wanted", file: "a.csv", content: many, known: []Column{}, want: "set Columns or Known in Options"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := writeFile(t, test.file, test.content)
			known := pairNames
			if test.known != nil {
				known = test.known
			}
			_, err := Read(path, Options{Columns: test.columns, Known: known, Header: test.head})
			checkError(t, err, path, test.want)
		})
	}
	path := writeFile(t, "a.csv", "a\x81,b\n")
	_, err := Read(path, Options{Known: pairNames, Encoding: "cp1252"})
	checkError(t, err, path, "line 1: the text (column 1) is not windows-1252: it has a byte that is no part of a character: save the file as UTF-8, or give its encoding")
	_, err = Read(path, Options{Known: pairNames, Encoding: "ansi"})
	checkError(t, err, path, `encoding "ansi" is unknown: the names are listed at`)
	_, err = ReadParallel([]string{path, path}, Options{Encoding: "cp1252"})
	checkError(t, err, path, "file 1 is not windows-1252")
	dir := t.TempDir()
	_, err = Read(dir, Options{Known: pairNames})
	checkError(t, err, dir, "it is a directory")
	_, err = Read(filepath.Join(dir, "none.csv"), Options{Known: pairNames})
	checkError(t, err, "none.csv", "no such file")
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v, want os.ErrNotExist", err)
	}
	_, err = Open(os.DevNull, Options{Known: pairNames})
	checkError(t, err, os.DevNull, "isn't a regular file")
}

// checkError checks that err is one line that contains the file and the string want.
func checkError(t *testing.T, err error, file, want string) {
	t.Helper()
	must.Fail(t, err, file, want)
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("got error %v, want one line", err)
	}
}

func TestReadCheck(t *testing.T) {
	path := writeFile(t, "a.csv", "label,text\n"+strings.Repeat("good,b\n", 100)+"bad,c\n")
	wrong := errors.New("no such label")
	o := Options{Known: pairNames, Check: func(fields []string) error {
		if fields[1] == "bad" {
			return wrong
		}
		return nil
	}}
	table := must.Get(Read(path, o))(t)
	if table.Len() != 100 || table.LeftOut != 1 || table.Bad[0].Line != 102 || !errors.Is(table.Bad[0], wrong) {
		t.Errorf("got %d rows and left out %v; want 100 rows, and line 102 left out", table.Len(), table.Bad)
	}
}

// With SkipBad, any share of bad rows may be left out, but not all rows.
func TestSkipBad(t *testing.T) {
	source, target := writeFile(t, "a.txt", "a\n\nb\nc\n"), writeFile(t, "b.txt", "x\ny\n\nz\n")
	for content, want := range map[string]string{
		"a,b\nc,\nd\n\"e\"f,g\nh,i\n": "2 rows, 3 left out", // an empty field, a missing one, a quote
		"a,b\n\"c,d\ne,f\ng,h\n":      "1 rows, 3 left out", // a quote that is never closed
		"a,\n\xff,b\n":                "it has no good row, only 2 bad: line 1: the label (column 2) is empty; line 2: the text (column 1) is not UTF-8",
		source:                        "2 rows, 2 left out", // parallel files
	} {
		o := Options{Known: pairNames, SkipBad: true}
		read := func() (*Table, error) { return Read(writeFile(t, "a.csv", content), o) }
		if content == source {
			read = func() (*Table, error) { return ReadParallel([]string{source, target}, o) }
		}
		table, err := read()
		if err != nil {
			checkError(t, err, "", want)
		} else if got := fmt.Sprintf("%d rows, %d left out", table.Len(), table.LeftOut); got != want {
			t.Errorf("%q: got %s, want %s", content, got, want)
		}
		o.SkipBad = false
		_, err = read()
		checkError(t, err, "", " bad")
	}
}

func TestReadParallel(t *testing.T) {
	source := writeFile(t, "a.txt", mark+"a, \"b\tc\r\nd;e\r\n")
	target := writeFile(t, "b.txt", "one\ntwo")
	table := must.Get(ReadParallel([]string{source, target}, Options{}))(t)
	rows, lines := contents(table)
	if got, want := fmt.Sprintf("%q %v", rows, lines), `[["a, \"b\tc" "one"] ["d;e" "two"]] [1 2]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte("one\ntwo"))); len(table.SHA256) != 2 || table.SHA256[1] != want {
		t.Errorf("got SHA-256 %s, want two, with %s second", table.SHA256, want)
	}
	for _, test := range []struct{ name, target, want string }{
		{"one more line", "one\ntwo\n\nfour\n", fmt.Sprintf("%q has 2, ", source)},
		{"one line less", "one", "b.txt\" has 1"},
		{"an empty line", "one\n\n", "line 2: the label (file 2) is empty"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ReadParallel([]string{source, writeFile(t, "b.txt", test.target)}, Options{Known: pairNames})
			checkError(t, err, source, test.want)
		})
	}
	_, err := ReadParallel([]string{source, filepath.Dir(source)}, Options{})
	checkError(t, err, filepath.Dir(source), "it is a directory")
	_, err = ReadParallel(nil, Options{})
	if err == nil {
		t.Error("ReadParallel without files: got no error")
	}
}

// TestThreeColumns reads rows with three roles, found by names, by numbers and from parallel files.
func TestThreeColumns(t *testing.T) {
	known := []Column{{Role: "question", Names: []string{"question"}}, {Role: "passage", Names: []string{"passage", "text"}}, {Role: "label", Names: []string{"label"}}}
	want := [][]string{{"q", "p", "l"}, {"r", "s", "m"}}
	read := func(content string, columns ...string) (*Table, error) {
		return Read(writeFile(t, "a.tsv", content), Options{Columns: columns, Known: known})
	}
	byName := must.Get(read("label\tid\ttext\tQuestion\nl\t1\tp\tq\nm\t2\ts\tr\n"))(t)
	byNumber := must.Get(read("l\t1\tp\tq\nm\t2\ts\tr\n", "4", "3", "1"))(t)
	var files []string
	for _, lines := range []string{"q\nr\n", "p\ns\n", "l\nm\n"} {
		files = append(files, writeFile(t, "a.txt", lines))
	}
	for i, table := range []*Table{byName, byNumber, must.Get(ReadParallel(files, Options{Known: known}))(t)} {
		if rows, _ := contents(table); !reflect.DeepEqual(rows, want) {
			t.Errorf("table %d: got %q, want %q", i, rows, want)
		}
	}
	_, err := read("q\tp\tl\nq\t \tl\n")
	checkError(t, err, "a.tsv", "line 2: the passage (column 2) is empty")
	_, err = read("q\tp\tl\n", "1", "3")
	checkError(t, err, "a.tsv", `data.columns must name 3 columns, the question, the passage and the label, got ["1" "3"]`)
}

// With Join, a row has the texts of its first two columns in one field, with one tab.
func TestJoin(t *testing.T) {
	known := []Column{{Role: "first text", Names: []string{"a"}}, {Role: "second text", Names: []string{"b"}}, {Role: "label", Names: []string{"c"}}}
	want := [][]string{{"x y\tz", "l"}, {"p\tq", "m"}}
	check := func(fields []string) error {
		if len(fields) != 2 || strings.Count(fields[0], "\t") != 1 {
			return fmt.Errorf("the row is %q", fields)
		}
		return nil
	}
	for _, test := range []struct{ file, content, bad string }{
		{"a.tsv", "c\ta\tb\nl\tx y\tz\nm\tp\tq\nl\tp\t\n", "line 4: the second text (column 3) is empty"},
		{"a.csv", "b,c,a\nz,l,x\ty\nq,m,p\nq,m,\" \"\n", "line 4: the first text (column 3) is empty"},
		{"a.jsonl", `{"a": "x\ty", "c": "l", "b": "z"}` + "\n" + `{"b": "q", "a": "p", "c": "m"}` + "\n" + `{"a": "q", "c": "m"}` + "\n", `line 3: the key "b" is missing`},
	} {
		path, o := writeFile(t, test.file, test.content), Options{Known: known, Join: [2]int{0, 2}, SkipBad: true, Check: check}
		table, err := Read(path, o)
		if err != nil {
			t.Error(err)
			continue
		}
		if rows, _ := contents(table); !reflect.DeepEqual(rows, want) || table.LeftOut != 1 || !strings.HasPrefix(table.Bad[0].Error(), test.bad) {
			t.Errorf("%s: got %q and the bad rows %v; want %q, and %s", test.file, rows, table.Bad, want, test.bad)
		}
		o.Known, o.Check = known[:2], nil
		var inputs []string
		got, bad := copyRows(t, path, o, func(input string) []any { inputs = append(inputs, input); return nil })
		if fmt.Sprint(inputs) != fmt.Sprint([]string{want[0][0], want[1][0]}) || got != test.content || len(bad) != 1 {
			t.Errorf("%s: the inputs are %q, the bad rows %v, and the file is written back as %q", test.file, inputs, bad, got)
		}
	}
	_, err := ReadParallel([]string{"a.txt", "b.txt"}, Options{Known: known, Join: [2]int{0, 2}})
	checkError(t, err, "a.txt, b.txt", "several texts per row must be columns of one file")
}

// TestTableMemory checks that a table needs at most 50 bytes per row in addition to its text: 100 MB for two million
// rows.
func TestTableMemory(t *testing.T) {
	const rows = 100_000
	var content bytes.Buffer
	text := 0
	for i := range rows {
		source, target := fmt.Sprintf("word %d", i), fmt.Sprint(i%10)
		text += len(source) + len(target)
		fmt.Fprintf(&content, "an id that nobody wants and which is long,\"%s\",%s\n", source, target)
	}
	path := writeFile(t, "a.csv", content.String())
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	table := must.Get(Read(path, Options{Columns: []string{"2", "3"}}))(t)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got := float64(after.HeapAlloc) - float64(before.HeapAlloc) - float64(text); got > 50*rows || table.Len() != rows {
		t.Errorf("got %.0f bytes in addition to the text for %d rows, want at most 50 per row", got, table.Len())
	}
	if got := table.Field(rows-1, 0); got != "word 99999" {
		t.Errorf("got %q in the last row, want word 99999", got)
	}
	runtime.KeepAlive(content)
}

// TestTableBlocks reads rows that fill a block exactly, and rows that don't fit in the rest of a block.
func TestTableBlocks(t *testing.T) {
	t.Parallel()
	var content strings.Builder
	var want [][]string
	large := [2]int{maxRow / 2, maxRow/2 - 2}
	for i, sizes := range [][2]int{large, large, large, large, {4, 4}, large, large, large, large, {7, 2}, {1, 1}} {
		row := []string{strings.Repeat(string(rune('a'+i)), sizes[0]), strings.Repeat(string(rune('A'+i)), sizes[1])}
		want = append(want, row)
		content.WriteString(strings.Join(row, "\t") + "\n")
	}
	table := must.Get(Read(writeFile(t, "a.tsv", content.String()), Options{Known: pairNames}))(t)
	if rows, _ := contents(table); !reflect.DeepEqual(rows, want) {
		t.Error("the fields differ from the file")
	}
	if len(table.blocks) != 3 || len(table.blocks[0]) != blockSize || len(table.blocks[1]) != blockSize-1 {
		t.Errorf("got %d blocks, the first with %d bytes; want three, the first full, the second not", len(table.blocks), len(table.blocks[0]))
	}
}

// A reason that several bad rows share is written once, and so is advice that all reasons end with.
func TestReasons(t *testing.T) {
	for content, want := range map[string]string{
		"a,\n\"b\n":                      `: line 1: the label (column 2) is empty; line 2: not CSV: extraneous or missing " in quoted-field`,
		strings.Repeat("a,\n", 6):        ": lines 1, 2, 3, 4, 5: the label (column 2) is empty; …",
		"\xff,b\na\xff,b\na,\n\xff,c\n":  ": lines 1, 4: the text (column 1) is not UTF-8: the byte at offset 0 (from 0) is no part of a character: " + textfile.Advice + "; line 2: ",
		"\xff,b\nca\xff,b\na,\xff\n":     "line 2: the text (column 1) is not UTF-8: the byte at offset 2 (from 0) is no part of a character; line 3: the label (column 2) is not UTF-8: the byte at offset 0 (from 0) is no part of a character: " + textfile.Advice,
		"\xff,b\n\xffa,b\n\xff,c\nab,\n": "; line 4: the label (column 2) is empty",
	} {
		_, err := Read(writeFile(t, "a.csv", content), Options{Known: pairNames})
		checkError(t, err, "", want)
	}
}

// Rows are counted against the free memory while they are read, with what the caller needs for each.
func TestReadMemory(t *testing.T) {
	testseed.Slow(t)
	const mb = 1 << 20
	long := strings.Repeat(strings.Repeat("x", mb)+"\ty\n", 20)
	for _, test := range []struct {
		name, content  string
		rowBytes, free int
		good           bool
	}{
		{"many rows", strings.Repeat("a\tb\n", 200_000), 0, 4 * mb, true}, // the Table takes 12 bytes per row
		{"many rows that need more", strings.Repeat("a\tb\n", 200_000), 50, 4 * mb, false},
		{"many rows in less memory", strings.Repeat("a\tb\n", 200_000), 0, 2 * mb, false},
		{"long rows", long, 0, 40 * mb, true},
		{"long rows in less memory", long, 0, 20 * mb, false},
	} {
		f := must.Get(openTable(writeFile(t, "rows.tsv", test.content), Options{}))(t)
		table, err := must.Get(f.records(Options{Columns: []string{"1", "2"}, RowBytes: test.rowBytes}))(t).table([]*tableFile{f}, test.free)
		unread := f.Unread()
		f.Close()
		if test.good && (err != nil || table.Len() != strings.Count(test.content, "\n")) {
			t.Errorf("%s: error %v, want all rows", test.name, err)
		}
		if want := "of memory, but there is only " + memory.LimitText() + ": use a smaller file"; !test.good && (err == nil || !strings.Contains(err.Error(), want) || unread == 0) {
			t.Errorf("%s: error %v with %d bytes unread, want one before the end that says %q", test.name, err, unread, want)
		}
	}
}
