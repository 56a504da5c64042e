package table

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/internal/textfile"
)

// writers write tables of texts and labels in the ways of other programs. A writer returns "" if its form can't hold a
// field.
var writers = []struct {
	name, ending string
	write        func(rows [][]string) string
}{
	{"CSV", ".csv", func(rows [][]string) string { return separated(',', rows) }},
	{"CSV with semicolons", ".csv", func(rows [][]string) string { return separated(';', rows) }},
	{"CSV with Excel's line", ".csv", func(rows [][]string) string { return "sep=;\n" + separated(';', rows) }},
	{"CSV after a title", ".csv", func(rows [][]string) string { return "# drawn\n" + separated(',', rows) }},
	{"CSV with tabs", ".tsv", func(rows [][]string) string { return quotedAll("\t", rows, false) }},
	{"write.table", ".txt", func(rows [][]string) string { return quotedAll("\t", rows, true) }},
	{"TSV", ".tsv", func(rows [][]string) string {
		var s strings.Builder
		for _, row := range rows {
			if strings.ContainsAny(strings.Join(row, ""), "\t\r\n") {
				return ""
			}
			s.WriteString(strings.Join(row, "\t") + "\n")
		}
		return s.String()
	}},
	{"JSONL", ".jsonl", func(rows [][]string) string {
		var s strings.Builder
		for _, row := range rows[1:] {
			line, _ := json.Marshal(map[string]string{"text": row[0], "label": row[1]})
			s.WriteString(string(line) + "\n")
		}
		return s.String()
	}},
	{"an array", ".json", func(rows [][]string) string {
		objects := []map[string]string{}
		for _, row := range rows[1:] {
			objects = append(objects, map[string]string{"text": row[0], "label": row[1]})
		}
		s, _ := json.MarshalIndent(objects, "", " ")
		return string(s)
	}},
}

func separated(comma rune, rows [][]string) string {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Comma = comma
	w.WriteAll(rows)
	return b.String()
}

// quotedAll puts quotes around all fields. With names, each row but the header begins with its number, as R writes it.
func quotedAll(separator string, rows [][]string, names bool) string {
	var s strings.Builder
	for i, row := range rows {
		if names && i > 0 {
			row = append([]string{fmt.Sprint(i)}, row...)
		}
		for j, field := range row {
			if j > 0 {
				s.WriteString(separator)
			}
			s.WriteString(`"` + strings.ReplaceAll(field, `"`, `""`) + `"`)
		}
		s.WriteString("\n")
	}
	return s.String()
}

// FuzzWritten writes drawn fields in each form and reads them: all rows must come back as they were, or be counted as
// bad. The fields of content are divided by "|".
func FuzzWritten(f *testing.F) {
	for _, s := range []string{
		"a|x|b|y", "a, b|x|c; d|y", `say "a"|x|"b"|y|"|"`, "a\tb|x|c\nd|y", "5\" disk|x|\"c|y", "# a|x|sep=;|y", "text|label|a|x", "|x|a|", "a|x|b|x|c|x|\"d\"|x|\"e\"|x",
		"__label__a b|x|__label__c|y", "é\ufeff|x|\ufeff|y", "a\r|x|b\r\nc|y", "1|2|3|4|5|6", " a |x| |y", "\"a\"|\"x\"|\"b\"|\"y\"|\"c\"|\"z\"|\"d\"|\"w\"", "[|{|]|}", "-DOCSTART-|x|a|y",
	} {
		f.Add(s)
	}
	f.Fuzz(readsBack)
}

// TestWritten draws fields for readsBack from the characters that matter to some form.
func TestWritten(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 1))
	parts := []string{"a", "b c", "yes", "no", "1", "2", "\"", "\"\"", ",", ";", "|", "|", "|", "|", "\t", "\n", "\r\n", "#", "sep=;", "__label__", "text", "label", "é", "\ufeff", " ", "[", "{", "-DOCSTART-"}
	for range testseed.Cases(1000) {
		var content strings.Builder
		for range 2 + rng.IntN(20) {
			content.WriteString(parts[rng.IntN(len(parts))])
		}
		readsBack(t, content.String())
	}
}

// readsBack writes fields, which are divided by "|", in each form, and reads them.
func readsBack(t *testing.T, content string) {
	fields := strings.Split(content, "|")
	if len(fields) < 2 || len(fields) > 60 || !utf8.ValidString(content) {
		return
	}
	rows := [][]string{{"text", "label"}}
	for pair := range slices.Chunk(fields[:len(fields)/2*2], 2) {
		rows = append(rows, pair)
	}
	for _, w := range writers {
		file := w.write(rows)
		if file == "" {
			continue
		}
		got, err := readString(w.ending, file, Options{Known: pairNames, SkipBad: true})
		if err != nil {
			continue
		}
		if w.name == "TSV" && len(got.Notes) > 0 { // all fields were drawn with quotes
			continue
		}
		read, _ := contents(got)
		if len(read)+got.LeftOut != len(rows)-1 {
			t.Errorf("%s: got %d rows and %d bad ones of %d, from %q", w.name, len(read), got.LeftOut, len(rows)-1, file)
		}
		next := 1
		for _, row := range read {
			same := func(written []string) bool { // encoding/csv reads \r\n as \n
				return slices.EqualFunc(written, row, func(a, b string) bool {
					return a == b || strings.HasSuffix(w.ending, "sv") && strings.ReplaceAll(a, "\r\n", "\n") == b || w.ending == ".txt" && strings.ReplaceAll(a, "\r\n", "\n") == b
				})
			}
			i := slices.IndexFunc(rows[next:], same)
			if i < 0 {
				t.Fatalf("%s: got the row %q, which wasn't written: %q; notes %q", w.name, row, file, got.Notes)
			}
			next += i + 1
		}
	}
}

// readString is like Read for the content of a file.
func readString(ending, content string, o Options) (*Table, error) {
	f, err := textfile.New(strings.NewReader(content), int64(len(content)), "")
	if err != nil {
		return nil, err
	}
	file, err := newTableFile(ending, f, o)
	if err != nil {
		return nil, err
	}
	r, err := file.records(o)
	return readAll("a"+ending, r, err, file)
}
