package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/textfile"
)

// copyRows writes every row of a file back, with added values for the source.
func copyRows(t testing.TB, path string, o Options, values func(source string) []any, added ...string) (string, []error) {
	t.Helper()
	r := must.Get(Open(path, o))(t)
	defer r.Close()
	var out bytes.Buffer
	w := must.Get(r.NewWriter(&out, added...))(t)
	var bad []error
	for {
		fields, _, err := r.Read()
		var row *RowError
		var answer []any
		switch {
		case err == io.EOF:
			must.Do(t, w.Close())
			return out.String(), bad
		case errors.As(err, &row):
			bad = append(bad, err)
			fields = row.Fields
		case err != nil:
			t.Fatal(err)
		default:
			answer = values(r.Wanted()[0])
		}
		must.Do(t, w.Write(fields, answer))
	}
}

func TestRecordsAreWrittenBack(t *testing.T) {
	known := Options{Known: pairNames[:1]}
	for _, test := range []struct {
		name, file, content, want string
		o                         Options
		bad                       int
	}{
		{name: "TSV", file: "a.tsv", o: known, content: "5\" a\tb\nc\n", want: "5\" a\tb\tof 5\" a\nc\t\tof c\n"},
		{name: "a row that is too long", file: "a.tsv", o: known, content: "text\tid\na\t1\nb\tx\t2\nc\t3\nd\t4\t\n", want: "text\tid\tanswer\na\t1\tof a\nb\tx\t2\nc\t3\tof c\nd\t4\tof d\n", bad: 1},
		{name: "names of rows", file: "a.tsv", o: known, content: "text\tid\n1\ta\tx\n2\tb\ty\n", want: "text\tid\tanswer\n1\ta\tx\tof a\n2\tb\ty\tof b\n"},
		{name: "lines", file: "a.txt", o: known, content: "a, b\nc", want: "a, b\tof a, b\nc\tof c\n"},
		{name: "TSV of Windows", file: "a.tsv", o: known, content: mark + "a\tb\r\n", want: mark + "a\tb\tof a\r\n"},
		{name: "header", file: "a.tsv", o: known, content: "id\tText\n1\tb\n", want: "id\tText\tanswer\n1\tb\tof b\n"},
		{name: "CSV", file: "a.csv", o: known, content: "\"a\nb\",\"\"\"c\"\"\"\n", want: "\"a\nb\",\"\"\"c\"\"\",\"of a\nb\"\n"},
		{name: "CSV of Windows", file: "a.csv", o: known, content: mark + "\"a;\nb\";c\r\n", want: mark + "\"a;\r\nb\";c;\"of a;\r\nb\"\r\n"},
		{name: "UTF-16 LE", file: "a.csv", o: known, content: inUTF16(binary.LittleEndian, "a,ä\r\n"), want: inUTF16(binary.LittleEndian, "a,ä,of a\r\n")},
		{name: "UTF-16 BE", file: "a.tsv", o: known, content: inUTF16(binary.BigEndian, "ä\tb\n"), want: inUTF16(binary.BigEndian, "ä\tb\tof ä\n")},
		{name: "windows-1252", file: "a.csv", o: Options{Known: pairNames[:1], Encoding: "cp1252"}, content: "\xfc,\x80\n\x81,b\n", want: "\xfc,\x80,of \xfc\n?,b,\n", bad: 1},
		{name: "half a character in UTF-16", file: "a.csv", o: known, content: inUTF16(binary.LittleEndian, "a,") + "\x00\xd8\n\x00", want: inUTF16(binary.LittleEndian, "a,\ufffd,of a\n")},
		{name: "gzip", file: "a.csv.gz", o: known, content: zipped("a,b\n"), want: "a,b,of a\n"},
		{name: "empty and short rows", file: "a.csv", o: Options{Columns: []string{"2"}}, content: "a,b\nc,\nd\n", want: "a,b,of b\nc,,\nd,,\n", bad: 2},
		{name: "bytes that aren't text in an unwanted column", file: "a.tsv", o: known, content: "a\t\xff\x00\n", want: "a\t\xff\x00\tof a\n"},
		{name: "not CSV", file: "a.csv", o: known, content: "a,b\nc\"d\ne,f\n", want: "a,b,of a\n,,\ne,f,of e\n", bad: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			if strings.HasPrefix(test.content, "a\t\xff\x00") { // after the first 64 KiB, where Open would refuse NUL bytes
				rest := strings.Repeat("a\tb\n", look)
				test.content, test.want = rest+test.content, strings.Repeat("a\tb\tof a\n", look)+test.want
			}
			got, bad := copyRows(t, writeFile(t, test.file, test.content), test.o, func(source string) []any { return []any{"of " + source} }, "answer")
			if got != test.want || len(bad) != test.bad {
				t.Errorf("got %.200q\nwant %.200q; bad rows %v, want %d", got, test.want, bad, test.bad)
			}
		})
	}
}

// A Writer returns an error for a character that the file's encoding lacks, and writes the next row.
func TestWriterRefusesCharacters(t *testing.T) {
	r := must.Get(Open(writeFile(t, "a.tsv", "\xfc\n"), Options{Columns: []string{"1"}, Encoding: "latin1"}))(t)
	defer r.Close()
	var out bytes.Buffer
	w := must.Get(r.NewWriter(&out))(t)
	must.Fail(t, w.Write([]string{"世"}, nil), "windows-1252 has no character '世'")
	if err := w.Write([]string{"ü"}, nil); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil || out.String() != "\xfc\n" {
		t.Errorf("Close: error %v, and %q was written", err, &out)
	}
}

func TestWriterRefusesTabs(t *testing.T) {
	r := must.Get(Open(writeFile(t, "a.tsv", "a\n"), Options{Columns: []string{"1"}}))(t)
	defer r.Close()
	var out bytes.Buffer
	w := must.Get(r.NewWriter(&out))(t)
	must.Fail(t, w.Write([]string{"a", "b\tc"}, nil), "field 2 of row 1 has a tab")
	if err := w.Close(); err != nil || out.Len() > 0 {
		t.Errorf("Close: error %v, and %q was written, want nothing", err, &out)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, os.ErrPermission }

func TestWriterErrors(t *testing.T) {
	for _, name := range []string{"a.tsv", "a.csv"} {
		r := must.Get(Open(writeFile(t, name, "a\n"), Options{Columns: []string{"1"}}))(t)
		defer r.Close()
		w, err := r.NewWriter(fullDisk{})
		if err == nil {
			w.Write([]string{"a"}, nil)
			err = w.Close()
		}
		if !errors.Is(err, os.ErrPermission) {
			t.Errorf("%s: got error %v, want the error of the underlying writer", name, err)
		}
	}
}

// FuzzRecords reads random bytes as a table, writes the rows, and checks that reading them again gives the same rows.
func FuzzRecords(f *testing.F) {
	endings := []string{".tsv", ".csv", "", ".jsonl", ".conll", ".conllu"}
	for _, s := range []string{"a\tb\nc\td\n", "text,label\r\n\"a\"\"\n\",b\r\n", "\"a", mark + "\"a\";b", "\xff\xfea\x00\t\x00b\x00", "\n\na\"b,c\nd,e\n", "\x1f\x8b",
		"{\"text\":\"\\ud834\\udd1e\",\"x\":{\"y\":[null]},\"label\":[\"a\",1]}\n\n{}\n{\"Text\":true,\"target\":0}", "0\n{}", ",0\"\n0\n10",
		"[\"a b\", {\"entities\": [[0, 1, \"X\"]]}]\n[\"c\", {\"entities\": []}]\n", `{"data": {"text": "a b"}, "annotations": [{"result": [{"type": "labels", "value": {"start": 0, "end": 1, "labels": ["X"]}}]}]}`,
		"-DOCSTART- O\n\n# O\na b\tO\n\n", "# c\n1-2\ta b\t_\t_\n1\ta b\t_\tX\n\n\n# d\n1.1\ta\n2 \tb\t_\tY\t_"} {
		for i := range endings {
			f.Add([]byte(s), i)
		}
	}
	read := func(t *testing.T, ending string, content []byte) (*Records, [][]string) {
		opened, err := textfile.New(bytes.NewReader(content), int64(len(content)), "")
		if err != nil {
			return nil, nil
		}
		file, err := newTableFile(ending, opened, Options{Tagged: true})
		if err != nil {
			return nil, nil
		}
		r, err := file.records(Options{Known: pairNames, Tagged: true})
		if err != nil {
			return nil, nil
		}
		rows := [][]string{}
		last := 0
		for {
			fields, line, err := r.Read()
			if err == io.EOF {
				return r, rows
			}
			if bad := new(RowError); errors.As(err, &bad) {
				if bad.Line <= last && !(r.form.array && bad.Line == last) { // several elements may be on a line
					t.Fatalf("a bad row starts on line %d, but the row before starts on line %d", bad.Line, last)
				}
				last = bad.Line
				continue
			}
			if err != nil && r.form.layout == objects { // the first object comes after a bad line, and has no known key
				return nil, nil
			}
			must.Do(t, err)
			if line <= last && !(r.form.array && line == last) {
				t.Fatalf("a row starts on line %d, but the row before starts on line %d", line, last)
			}
			last = line
			rows = append(rows, append([]string{}, fields...))
		}
	}
	f.Fuzz(func(t *testing.T, content []byte, ending int) {
		if ending < 0 || ending >= len(endings) || len(content) > 1<<15 {
			return
		}
		r, rows := read(t, endings[ending], content)
		if r == nil {
			return
		}
		var out bytes.Buffer
		var added []string
		var values []any
		if r.form.layout != delimited {
			added, values = []string{"answer"}, []any{"x y"}
		}
		w := must.Get(r.newWriter(&out, added))(t)
		for _, row := range rows {
			if err := w.Write(row, values); err != nil {
				return // TSV allows no carriage return inside a field
			}
		}
		must.Do(t, w.Close())
		if r.form.layout == sentences && !r.form.universal && bytes.Contains(content, []byte("#")) {
			return // with one more column, a token's line may have as many cells as a comment
		}
		again := newLike(t, r, &out)
		for _, row := range rows {
			fields, _, err := again.Read()
			if added != nil && err == nil { // the row's text has changed
				fields, row = fields[:len(r.columns)], row[:len(r.columns)]
			}
			if got, want := plain(fields), plain(row); err != nil || got != want {
				t.Fatalf("read again, got %s, error %v; want %s", got, err, want)
			}
		}
		if _, _, err := again.Read(); err != io.EOF {
			t.Fatalf("after the last row: got error %v, want io.EOF", err)
		}
	})
}

// newLike returns Records that read written, a file of the same form as r's file.
func newLike(t *testing.T, r *Records, written *bytes.Buffer) *Records {
	opened := must.Get(textfile.New(written, int64(written.Len()), ""))(t)
	file := &tableFile{opened, r.form}
	file.form.columns++ // an added value
	o := r.options
	if o.Columns, o.Tagged = r.header, true; r.form.layout == delimited {
		o.Columns = nil
	}
	rows := must.Get(file.rows(o))(t)
	again := &Records{rows: rows, form: r.form, columns: r.columns, header: r.header, options: r.options}
	if r.header != nil && r.form.layout == delimited {
		must.Get(again.rows.next())(t)
	}
	return again
}

// plain formats fields for comparison. It removes carriage returns, because CSV drops them before line feeds. It
// replaces invalid UTF-8 by U+FFFD, because UTF-16 files can't contain it.
func plain(fields []string) string {
	return fmt.Sprintf("%q", []rune(strings.ReplaceAll(strings.Join(fields, "\x00"), "\r", "")))
}
