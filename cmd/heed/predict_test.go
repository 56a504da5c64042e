package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
)

// spelled returns the folder of a run of spell, which all tests share.
func spelled(t *testing.T) string {
	t.Helper()
	spelling.Do(func() { spell(t, shared) })
	return filepath.Join(shared, "run")
}

var spelling sync.Once

// spell trains a run in folder for a few epochs. The model learns to write a word of the letters a to d as capitals
// with spaces between, from a file in the same folder.
func spell(t *testing.T, folder string) (dir, file string) {
	t.Helper()
	dir, file = filepath.Join(folder, "run"), filepath.Join(folder, "spelled.tsv")
	var rows strings.Builder
	for i := range 1000 {
		var word, letters []byte
		for n := range 1 + i%4 {
			c := i >> 2 >> (2 * n) % 4
			word, letters = append(word, "abcd"[c%4]), append(letters, "ABCD"[c%4], ' ')
		}
		fmt.Fprintf(&rows, "%s\t%s\n", word, bytes.TrimSpace(letters))
	}
	write(t, file, rows.String())
	succeed(t, "train", "--task=seq2seq", "--data="+file, "--out="+dir, "--dim=16", "--heads=2", "--layers=1", "--max-epochs=4", "--dropout=0", "--learning-rate=0.01")
	return dir, file
}

// withInput makes r the standard input until the end of the test.
func withInput(t *testing.T, r *os.File) {
	t.Helper()
	stdin := os.Stdin
	os.Stdin = r
	t.Cleanup(func() { os.Stdin = stdin })
}

func withText(t *testing.T, text string) {
	t.Helper()
	path := newFile(t, "stdin", text)
	f := must.Get(os.Open(path))(t)
	t.Cleanup(func() { f.Close() })
	withInput(t, f)
}

func TestPredictLines(t *testing.T) {
	testseed.Slow(t)
	dir := spelled(t)
	want := succeed(t, "predict", dir, "abcd", "d")
	withText(t, "\uFEFFabcd\r\nd")
	prints(t, want, "predict", dir)
	withText(t, "")
	prints(t, "", "predict", dir)

	withText(t, "d\n\nabcd\n"+strings.Repeat("a", 100)+"\n")
	got := heed("predict", dir, "--top=1", "--beam=3")
	lines := strings.Split(got.stdout, "\n")
	first := succeed(t, "predict", dir, "--top=1", "--beam=3", "d")
	if got.code != 1 || len(lines) != 5 || lines[0]+"\n" != first || lines[1] != "" || !regexp.MustCompile(`^[ABCD ]+\t[0-9.e-]+$`).MatchString(lines[2]) || lines[3] != "" {
		t.Errorf("status %d and answers %q, want 1 and answers to lines 1 and 3 only", got.code, got.stdout)
	}
	must.Have(t, got.stderr, "heed: standard input, line 2: ", "heed: standard input, line 4: ", "heed: there is no answer to 2 of 4 inputs\n")
	withText(t, "d\n"+strings.Repeat("a", maxLine+1))
	fail(t, heed("predict", dir), 1, "standard input, line 2: the line has more than 4 MiB")
	fail(t, heed("predict", dir, "--beam=5000", "a"), 2, "--beam must be from 1 to 1024, or 0 for 1, got 5000")

	// With --json, each line has an object, also for an input without an answer.
	withText(t, "d\n\u202e\u200b\n"+strings.Repeat("a", 100)+"\n")
	got = heed("predict", dir, "--json", "--top=2")
	want = `^{"input":"d","answer":"[ABCD ]+","probability":[0-9.e-]+,"alternatives":\[{"answer":"[ABCD ]+","probability":[0-9.e-]+},{[^}]*}\]}
{"input":"\\u202e\\u200b","answer":.*"unknown":true,"alternatives":.*}
{"input":"a+","error":"task seq2seq: a source must have 1 to 64 symbols, got 100"}
$`
	if got.code != 1 || !regexp.MustCompile(want).MatchString(got.stdout) {
		t.Errorf("status %d and answers %s, want 1 and %s", got.code, got.stdout, want)
	}
	if got := heed("predict", dir, "--json", strings.Repeat("a", 100)); got.code != 2 || !strings.Contains(got.stdout, `","error":"`) {
		t.Errorf("status %d and answers %s, want 2 and an error", got.code, got.stdout)
	}

	// An input with a symbol that training never saw is answered, and counted.
	withText(t, "a\naxb\n\n")
	if got := heed("predict", dir); !strings.HasSuffix(got.stderr, "heed: letters, or mostly words, that training never saw are in 1 of 3 inputs\nheed: there is no answer to 1 of 3 inputs\n") {
		t.Errorf("standard error is %q, want the numbers of unknown symbols and missing answers", got.stderr)
	}
	if got := heed("predict", dir, "a", "x", "y"); got.code != 0 || got.stderr != "heed: letters, or mostly words, that training never saw are in 2 of 3 inputs\n" {
		t.Errorf("status %d and standard error %q, want 0 and 2 of 3 inputs", got.code, got.stderr)
	}
}

// Each line is answered before the next line arrives.
func TestPredictLinesAnswersAtOnce(t *testing.T) {
	dir := spelled(t)
	stdin, lines, err := os.Pipe()
	must.Do(t, err)
	withInput(t, stdin)
	answers, stdout := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(t.Context(), nil, []string{"predict", dir}, stdout, io.Discard)
		stdout.Close()
	}()
	read := bufio.NewReader(answers)
	for _, letter := range []string{"a", "b", "c"} {
		must.Get(io.WriteString(lines, letter+"\n"))(t)
		if got, err := read.ReadString('\n'); err != nil || got != succeed(t, "predict", dir, letter) {
			t.Errorf("the answer to %s is %q, %v, want the same as to an argument", letter, got, err)
		}
	}
	lines.Close()
	if rest, err := io.ReadAll(read); len(rest) > 0 || err != nil {
		t.Errorf("after the last answer comes %q, %v, want nothing", rest, err)
	}
	if got := <-code; got != 0 {
		t.Errorf("status %d, want 0", got)
	}
}

// In TSV, an answer with a tab or a line break is quoted, so that the file keeps its rows.
func TestPredictAnswersOfLines(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	dir, path := filepath.Join(folder, "run"), filepath.Join(folder, "rows.csv")
	write(t, path, "text,label\n"+strings.Repeat("a,\"two\nlines\"\nb,\"a\ttab\"\n", 40)+"c,\"two\nlines\"\n")
	succeed(t, "train", "--task=classification", "--data="+path, "--validation-data="+path, "--out="+dir, "--dim=16", "--heads=2", "--layers=1", "--max-epochs=30", "--learning-rate=0.01")
	tsv := filepath.Join(folder, "rows.tsv")
	write(t, tsv, "a\nb\n")
	prints(t, "a\t\"two\\nlines\"\nb\t\"a\\ttab\"\n", "predict", dir, "--data="+tsv)
	long := strings.Repeat("a", 64) + "b"
	write(t, tsv, "a\n"+long+"\n")
	got := heed("predict", dir, "--data="+tsv, "--json")
	if want := `^{"input":"a","answer":"two\\nlines","probability":[0-9.]+}\n{"input":"a+b","answer":"[^"]+","probability":[0-9.]+,"cut":true}\n$`; got.code != 0 || !regexp.MustCompile(want).MatchString(got.stdout) {
		t.Errorf("heed predict --json prints %s, want %s", got.stdout, want)
	}
	if want := "heed: 1 of 2 inputs is longer than the model's 64 symbols; the end was ignored\n"; got.stderr != want {
		t.Errorf("standard error is %q, want %q", got.stderr, want)
	}
	if got, want := heed("attention", dir, long), "heed: the input is longer than the model's 64 symbols; the end was ignored\n"; got.code != 0 || got.stderr != want {
		t.Errorf("heed attention: status %d and standard error %q, want 0 and %q", got.code, got.stderr, want)
	}
	if got := succeed(t, "predict", dir, "--top=9", "a"); strings.Count(got, "\t") != 3 {
		t.Errorf("heed predict prints %q, want two labels with their probabilities", got)
	}
	write(t, path, "text\na\n")
	prints(t, "text,answer\na,\"two\nlines\"\n", "predict", dir, "--data="+path)
}

func TestPredictData(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	dir := spelled(t)
	folder := t.TempDir()
	abc, d := strings.TrimSpace(succeed(t, "predict", dir, "abc")), strings.TrimSpace(succeed(t, "predict", dir, "d"))
	for _, test := range []struct {
		name, file, content, want string
		args                      []string
		stderr                    string
	}{
		{"header", "a.csv", "id,Word,x\r\n1,abc,\"5\"\" \r\ndisk\"\r\n2,d\r\n", "id,Word,x,answer\r\n1,abc,\"5\"\" \r\ndisk\"," + abc + "\r\n2,d,," + d + "\r\n", nil, ""},
		{"no header", "a.tsv", "abc\nd\tE\n", "abc\t" + abc + "\nd\tE\t" + d + "\n", nil, ""},
		{"by name", "a.csv", "word;in;answer\nabc;d;\n", "word;in;answer;predicted_answer\nabc;d;;" + d + "\n", []string{"--columns=in"}, ""},
		{"as in training", "a.csv", "x;in;answer\nabc;d;\n", "x;in;answer;predicted_answer\nabc;d;;" + d + "\n", []string{"--columns=in,answer"}, ""},
		{"without an answer", "a.csv", "word\nabc\n\"\"\n" + strings.Repeat("a", 70) + "\nd\n", "word,answer\nabc," + abc + "\n,\n" + strings.Repeat("a", 70) + ",\nd," + d + "\n", nil,
			"heed: there is no answer to 2 of 4 inputs\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(folder, test.file)
			write(t, path, test.content)
			got := heed(append([]string{"predict", dir, "--data=" + path}, test.args...)...)
			status := min(1, len(test.stderr))
			if got.code != status || got.stdout != test.want || !strings.HasSuffix(got.stderr, test.stderr) || (got.stderr == "") != (test.stderr == "") {
				t.Errorf("status %d, output %q and standard error %q, want %d, %q and %q", got.code, got.stdout, got.stderr, status, test.want, test.stderr)
			}
			out := filepath.Join(folder, "answered-"+test.file)
			got = heed(append([]string{"predict", dir, "--data=" + path, "--out=" + out}, test.args...)...)
			if got.code != status || got.stdout != "" || read(t, out) != test.want {
				t.Errorf("status %d, standard error %q, and the file is %q, want %d and %q", got.code, got.stderr, read(t, out), status, test.want)
			}
		})
	}

	path := filepath.Join(folder, "many.csv")
	write(t, path, "word\n"+strings.Repeat("abc\nd\n", maxLines))
	out := succeed(t, "predict", dir, "--data="+path, "--top=2")
	lines := strings.Split(out, "\n")
	if len(lines) != 2*maxLines+2 || lines[0] != "word,answer,probability,answer_2,probability_2" || !regexp.MustCompile("^d,"+d+",[0-9.e-]+,[ABCD ]+,[0-9.e-]+$").MatchString(lines[2]) {
		t.Fatalf("heed predict prints %d lines that begin with %q, want %d", len(lines), lines[:3], 2*maxLines+2)
	}
	for i := 1; i < len(lines)-1; i++ {
		if lines[i] != lines[2-i%2] {
			t.Fatalf("line %d is %q, want %q", i, lines[i], lines[2-i%2])
		}
	}

	before := "word\na\n\"b\"c\n"
	write(t, path, before)
	answered := filepath.Join(folder, "answered.csv")
	write(t, answered, "kept")
	fail(t, heed("predict", dir, "--data="+path, "--out="+answered), 1, "many.csv, line 3", "this row can't be written back; correct it first")
	if read(t, path) != before || read(t, answered) != "kept" {
		t.Error("a failed call changed a file")
	}
	fail(t, heed("predict", dir, "--data="+path, "--columns=in"), 1, `column "in" isn't in the header, which has (1) "word"`)
}

// gather holds back lines that aren't wanted yet, but only up to a limit of lines and of bytes.
func TestGather(t *testing.T) {
	for _, test := range []struct {
		line  string
		limit int // lines that it holds back
	}{{"a", maxLines}, {strings.Repeat("a", maxBytes/4), 4}} {
		read, arrived := make(chan string), make(chan []string)
		go gather(read, arrived)
		for range test.limit {
			read <- test.line
		}
		select {
		case read <- test.line:
			t.Errorf("lines of %d bytes: it takes more than %d", len(test.line), test.limit)
		case lines := <-arrived:
			if len(lines) != test.limit {
				t.Errorf("lines of %d bytes: it gives %d, want %d", len(test.line), len(lines), test.limit)
			}
		}
		read <- "last"
		close(read)
		if lines, ok := <-arrived; !ok || len(lines) != 1 || lines[0] != "last" {
			t.Errorf("after the others: %q, want the last line", lines)
		}
		if _, ok := <-arrived; ok {
			t.Error("after the last line: more lines, want none")
		}
	}
}

// The name of --out must fit the form of its rows.
func TestPredictWritesTheFormOfTheFile(t *testing.T) {
	t.Parallel()
	dir, rows := ran(t, "--task=copy"), t.TempDir()
	for name, content := range map[string]string{"a.csv": "text,id\nab,1\n", "a": "text,id\nab,1\n", "a.txt": "ab\n", "a.jsonl": `{"text": "ab"}`, "a.conll": "ab O\n"} {
		write(t, filepath.Join(rows, name), content)
	}
	for _, test := range []struct{ file, out, have string }{ // have: the form of the rows, or "" if the name fits
		{"a.csv", "x.jsonl", "CSV"}, {"a.csv", "x.TSV", "CSV"}, {"a.csv", "x.json.gz", "CSV"}, {"a.csv", "x.conll", "CSV"}, {"a.csv", "x.csv.gz", ""}, {"a.csv", "x.txt", ""}, {"a.csv", "x", ""},
		{"a", "x.tab", "CSV"}, {"a", "x.csv", ""}, {"a.txt", "x.csv", "TSV"}, {"a.txt", "x.tsv", ""},
		{"a.jsonl", "x.csv", "JSONL"}, {"a.jsonl", "x.json", ""}, {"a.conll", "x.tsv", "CoNLL"},
	} {
		out := filepath.Join(rows, test.out)
		c := heed("predict", dir, "--data="+filepath.Join(rows, test.file), "--out="+out)
		if test.have == "" && c.code != 0 {
			t.Errorf("%s to %s: status %d, standard error %q, want 0", test.file, test.out, c.code, c.stderr)
		} else if test.have != "" {
			rejected(t, c, 2, "are written back as "+test.have+": let its name end in ."+strings.ToLower(test.have))
			absent(t, out)
		}
		os.Remove(out)
	}
}
