package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/internal/textfile"
)

// Form returns the form in which a Writer writes a file's rows: TSV, CSV, JSONL or CoNLL. It returns the errors of Read
// for files that can't be opened. Of the options, it needs Encoding, Tagged and, where bars may divide names, those
// that say which columns are wanted.
func Form(path string, o Options) (string, error) {
	f, err := openTable(path, o)
	if err != nil {
		return "", err
	}
	return f.form.String(), f.Close()
}

// FormNamed returns the form that the ending of a file's name promises, or "" if it promises none.
func FormNamed(path string) string {
	switch ending := textfile.Ending(path); ending {
	case ".csv":
		return "CSV"
	case ".tsv", ".tab":
		return "TSV"
	default:
		if f := (form{layout: layoutOf(ending, "", false)}); f.layout != delimited {
			return f.String()
		}
	}
	return ""
}

// mark is a byte-order mark.
const mark = textfile.Mark

// tableFile is an open file. It is read as UTF-8 without a byte-order mark.
type tableFile struct {
	*textfile.File
	form form
}

// look is the number of bytes at the start of a file that decide its form.
const look = textfile.Buffer

// openTable opens a file and detects its form.
func openTable(path string, o Options) (*tableFile, error) {
	f, err := textfile.Open(path, o.Encoding)
	if err != nil {
		return nil, tableError(path, err)
	}
	t, err := newTableFile(textfile.Ending(path), f, o)
	if err != nil {
		f.Close()
		return nil, tableError(path, err)
	}
	return t, nil
}

// tableError returns err with the path of its file. A *setting.Error stays one.
func tableError(path string, err error) error {
	if wrong := new(setting.Error); errors.As(err, &wrong) {
		return setting.Errorf("data file %q: %w", path, wrong)
	}
	return fmt.Errorf("data file %q: %w", path, text.Reason(err))
}

// newTableFile detects the form of a file from the ending of its name and its first bytes. Only if o.Tagged is true,
// its first bytes may make it CoNLL.
func newTableFile(ending string, f *textfile.File, o Options) (*tableFile, error) {
	t := &tableFile{f, form{mark: f.Mark, encoding: f.Encoding}}
	head, err := t.Peek(look)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return nil, textfile.ErrNUL
	}
	start := head
	head = bytes.TrimLeft(head, "\r\n")
	first, _, more := bytes.Cut(head, []byte("\n"))
	if !more && bytes.Contains(bytes.TrimRight(first, "\r"), []byte("\r")) {
		return nil, errors.New("its lines end in \\r only: save it with \\n or \\r\\n")
	}
	windows := bytes.Count(head, []byte("\r\n"))
	t.form.crlf = windows > 0 && 2*windows >= bytes.Count(head, []byte("\n")) // line ends within quotes may differ
	switch t.form.layout = layoutOf(ending, string(first), o.Tagged); {
	case t.form.layout == objects:
		if ending == ".json" {
			t.form.before = string(dataArray.Find(start))
		}
		if n := len(t.form.before); n > 0 {
			t.form.array = true
			_, err := t.Discard(n - 1)
			return t, err
		}
		inside, list := bytes.CutPrefix(bytes.TrimSpace(head), []byte("["))
		t.form.array = list && !bytes.HasPrefix(bytes.TrimSpace(inside), []byte(`"`)) // otherwise, a line is a text and its spans
		if list {
			return t, nil
		}
		return t, f.CheckJSONL()
	case t.form.layout == sentences:
		t.form.universal = ending == ".conllu" || ending == ".conllx"
		t.form.columns, t.form.lasts = conllColumns(string(head))
	case t.form.layout == delimited:
		if named, ok := separatorLine(first); ok {
			t.form.separator, t.form.above = named, 1
		} else {
			t.form.separator = separator(ending, first, head, o)
		}
		if bytes.HasPrefix(first, []byte(labelMark)) && ending != ".csv" && bytes.IndexByte(first, '\t') < 0 {
			t.form.labelled, t.form.separator = true, '\t' // rows are written as TSV
		}
		t.form.look(head, err == nil, o)
		body := bytes.TrimRight(head, "\r\n")
		t.form.gaps = bytes.Contains(body, []byte("\n\n")) || bytes.Contains(body, []byte("\n\r\n"))
	}
	return t, nil
}

// dataArray matches the beginning of a JSON object whose rows are in one array, such as a file of SQuAD.
var dataArray = regexp.MustCompile(`^\s*\{\s*(?:"version"\s*:\s*"[^"]*"\s*,\s*)?"data"\s*:\s*\[`)

// layoutOf returns a file's layout, from the ending of its name and its first line.
func layoutOf(ending, first string, tagged bool) layout {
	switch ending {
	case ".json", ".jsonl", ".ndjson":
		return objects
	case ".conll", ".conllu", ".conllx", ".bio", ".iob", ".iob2", ".iobes", ".bioes":
		return sentences
	}
	if cells := cellsOf(strings.TrimRight(first, "\r")); tagged && len(cells) > 0 && cells[0] == docStart {
		return sentences
	}
	return delimited
}

// separator returns the separator of the fields, from the ending of the file's name, the first line and the first row.
func separator(ending string, first, head []byte, o Options) rune {
	if bars := strings.Split(strings.TrimRight(string(first), "\r"), "|"); len(bars) > 1 && o.isHeader(bars) {
		return '|'
	}
	commas, semicolons, quoted := 0, 0, false
	for _, c := range head {
		if c == '\n' && !quoted {
			break
		}
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',':
			commas++
		case c == ';':
			semicolons++
		}
	}
	switch ending {
	case ".tsv", ".tab", ".txt":
		return '\t'
	case ".csv":
	default:
		if bytes.IndexByte(first, '\t') >= 0 || commas+semicolons == 0 {
			return '\t'
		}
	}
	if semicolons > commas {
		return ';'
	}
	return ','
}

// objectLines returns a reader of the file's objects: its lines, or the elements of an array.
func (t *tableFile) objectLines() objectLines {
	if !t.form.array {
		return &lineReader{in: t.Reader}
	}
	a := &arrayLines{in: newlines{capped: capped{in: t.Reader}}}
	a.decoder = json.NewDecoder(&a.in)
	a.in.done = strings.Count(t.form.before, "\n")
	a.wrapped = t.form.before != ""
	return a
}
