package data

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/textfile"
)

// writeAll writes files to a new folder and returns its path.
func writeAll(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
		must.Do(t, os.WriteFile(path, []byte(content), 0o666))
	}
	return dir
}

func zipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.String()
}

// within makes t's temporary files in a new folder. It checks at the end that none is left.
func within(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 {
			t.Errorf("temporary files left: %v, error %v", left, err)
		}
	})
}

func TestTextFiles(t *testing.T) {
	dir := writeAll(t, map[string]string{
		"plain.txt": "Größe\r\n", "mark.txt": "\ufeffé\n", "open.txt": "no newline", "empty.txt": "",
		"packed.txt.gz": zipped("Größe\n"), "latin.txt": "gr\xfc\xdfe", "japanese.txt": "\x95\x5c\n", "utf16.txt": "\xff\xfea\x00\xfc\x00",
		"utf16.raw": "a\x00\xfc\x00", "lines.jsonl": "{\"text\": \"a\\nb\", \"id\": 1}\n\n{\"id\": 2, \"text\": \"c\"}", "lines.ndjson.gz": zipped("{\"body\": \"é\", \"text\": \"x\"}\n"),
		"all/b.txt": "b", "all/a/z.txt": "z\n", "all/a.txt": "a", "all/.hidden": "\xff", "all/.git/x": "\xff", "all/none": "", "all/c.jsonl": `{"text": "d"}`,
	})
	if err := errors.Join(os.Symlink("../plain.txt", filepath.Join(dir, "all", "link")), os.Symlink("all", filepath.Join(dir, "linked"))); err != nil {
		t.Skip(err)
	}
	long := strings.Repeat("なにか𝄞\n", 5000)
	must.Do(t, os.WriteFile(filepath.Join(dir, "long.gz"), []byte(zipped(long)), 0o666))
	for _, test := range []struct {
		name, paths   string // paths below dir, separated by spaces
		encoding, key string
		want          string
	}{
		{name: "plain", paths: "plain.txt", want: "Größe\r\n"},
		{name: "a mark in one plain file", paths: "mark.txt", want: "é\n"},
		{name: "two files", paths: "plain.txt mark.txt", want: "Größe\r\né\n"},
		{name: "the same file twice", paths: "plain.txt plain.txt", want: "Größe\r\nGröße\r\n"},
		{name: "a newline between files", paths: "open.txt open.txt", want: "no newline\nno newline"},
		{name: "gzip", paths: "packed.txt.gz", want: "Größe\n"},
		{name: "long", paths: "long.gz", want: long},
		{name: "Latin-1", paths: "latin.txt", encoding: "latin1", want: "grüße"},
		{name: "Shift JIS", paths: "japanese.txt", encoding: "shift_jis", want: "表\n"},
		{name: "UTF-16", paths: "utf16.txt", want: "aü"},
		{name: "UTF-16 without a mark", paths: "utf16.raw", encoding: "utf-16le", want: "aü"},
		{name: "JSONL", paths: "lines.jsonl", want: "a\nb\nc\n"},
		{name: "another key", paths: "lines.ndjson.gz", key: "body", want: "é\n"},
		{name: "JSONL and plain", paths: "open.txt lines.jsonl plain.txt", want: "no newline\na\nb\nc\nGröße\r\n"},
		{name: "a folder", paths: "all", want: "z\na\nb\nd\nGröße\r\n"},
		{name: "a link to a folder, and a file", paths: "linked open.txt", want: "z\na\nb\nd\nGröße\r\nno newline"},
	} {
		t.Run(test.name, func(t *testing.T) {
			within(t)
			f := TextFiles{Encoding: test.encoding, Key: test.key}
			for path := range strings.FieldsSeq(test.paths) {
				f.Paths = append(f.Paths, filepath.Join(dir, path))
			}
			text := must.Get(OpenText(f, nil))(t)
			checkWindows(t, text, test.want)
			if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(test.want))); text.SHA256() != sum || text.Size() != int64(len(test.want)) {
				t.Errorf("got SHA-256 %s and size %d, want %s and %d", text.SHA256(), text.Size(), sum, len(test.want))
			}
			if err := text.Close(); err != nil {
				t.Error(err)
			}
			if err := text.Window(make([]int, 1), 0); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("after Close, Window returned %v", err)
			}
		})
	}
}

func TestTextFilesErrors(t *testing.T) {
	dir := writeAll(t, map[string]string{
		"a.txt": "a\n", "empty.txt": "", "half.gz": zipped(strings.Repeat("The fox.\n", 1000))[:60], "wrong.gz": zipped("né\xff"), "wrong.txt": "né\xff", "mark.gz": zipped("\ufeffa\xff"),
		"nul.gz": zipped("a\x00"), "lone.txt": "\xff\xfea\x00\x00\xd8", "cp1252.txt": "ab\x81", "all/a.txt": "a", "all/image.png": "\x89PNG", "none/.hidden": "a",
		"1.jsonl": "{\"text\": \"a\"}\n[1]\n", "2.jsonl": "{\"text\": \"a\"}\n\n{\"body\": \"a\", \"id\": 1}\n", "3.jsonl": `{"text": null}`, "4.jsonl": `{"text": "a`,
		"5.jsonl": "{\"text\": \"\xff\"}", "6.jsonl": `{"text": "a\u0000"}`, "7.jsonl": "{}\n{\"text\": \"" + strings.Repeat("a", maxLine) + "\"}", "8.jsonl": "\n\n", "9b.jsonl": `{"Text ": "a"}`, "lines.jsonl": "{\n  \"text\": \"a\"\n}\n", "array.jsonl": "[{\"text\": \"a\"}]", "9.jsonl": "null\n", "twice.jsonl": `{"text": "a", "x": 1, "x": 2, "text": "b"}`, "half.jsonl": `{"text": "a\ud800"}`, "zip.txt": "PK\x03\x04",
	})
	for _, test := range []struct {
		paths, encoding, want string
	}{
		{"", "", "a text needs at least one file"},
		{"a.txt missing.txt", "", "missing.txt\": no such file or directory"},
		{"empty.txt", "", "empty.txt\": it is empty"},
		{"zip.txt", "", "save the sheet as CSV"},
		{"a.txt empty.txt", "", "empty.txt\": it is empty"},
		{"half.gz", "", "half.gz\": its gzip data are damaged or incomplete: unexpected EOF"},
		{"wrong.gz", "", "wrong.gz\": not UTF-8: the byte at offset 3 (from 0) is no part of a character: " + textfile.Advice},
		{"wrong.txt", "", "wrong.txt\": not UTF-8: the byte at offset 3 (from 0) is no part of a character: " + textfile.Advice},
		{"a.txt wrong.txt", "", "wrong.txt\": not UTF-8: the byte at offset 3 "},
		{"mark.gz", "", "offset 4 "},
		{"nul.gz", "", "it has NUL bytes"},
		{"lone.txt", "", "not utf-16le: the byte at offset 4 (from 0)"},
		{"cp1252.txt", "windows-1252", "not windows-1252: the byte at offset 2 (from 0)"},
		{"a.txt", "ansi", `a.txt": encoding "ansi" is unknown`},
		{"all", "", "image.png\": not UTF-8: the byte at offset 0"},
		{"a.txt none", "", "none\" is a directory without files to read"},
		{"1.jsonl", "", "1.jsonl\": line 2: it isn't a JSON object: \"[1]\""},
		{"2.jsonl", "", `line 3: it has no key "text", but the keys ["body" "id"]: choose the key of the text`},
		{"9b.jsonl", "", `line 1: it has no key "text", but the keys ["Text "]: choose the key of the text; did you mean Text ?`},
		{"3.jsonl", "", `line 1: the value of key "text" is not a string`},
		{"4.jsonl", "", "line 1: it isn't a JSON object: unexpected end of JSON input"},
		{"5.jsonl", "", `line 1: the value of key "text" has a byte that is no part of a character: save the file as UTF-8`},
		{"6.jsonl", "", "line 1: the value of key \"text\" has a NUL character"},
		{"7.jsonl", "", "line 1: it has no key \"text\", but the keys []"},
		{"8.jsonl", "", "is empty"},
		{"lines.jsonl", "", "its first JSON object has several lines, but each line must be one object: convert it with jq -c . FILE"},
		{"array.jsonl", "", "it is a JSON array, but each line must be one object: convert it with jq -c '.[]' FILE"},
		{"twice.jsonl", "", `line 1: the key "text" is in the line twice`},
		{"half.jsonl", "", `line 1: the value of key "text" has only half of a character, such as \ud800 without \udc00`},
		{"9.jsonl", "", "line 1: it isn't a JSON object: \"null\""},
	} {
		t.Run(test.paths, func(t *testing.T) {
			within(t)
			f := TextFiles{Encoding: test.encoding}
			for path := range strings.FieldsSeq(test.paths) {
				f.Paths = append(f.Paths, filepath.Join(dir, path))
			}
			_, err := OpenText(f, nil)
			must.Fail(t, err, test.want)
			if strings.Contains(err.Error(), "give a text file") && !strings.Contains(test.want, "directory without") {
				t.Errorf("the error %q has advice that doesn't help", err)
			}
		})
	}
	path := filepath.Join(dir, "long.jsonl")
	must.Do(t, os.WriteFile(path, []byte("{\"text\": \"a\"}\n{\"text\": \""+strings.Repeat("a", maxLine)), 0o666))
	must.Refuse(OpenText(oneFile(path), nil))(t, "long.jsonl\": line 2: it has more than 4 MiB")
}

type fullDisk struct{ err error }

func (f fullDisk) Write([]byte) (int, error) { return 0, f.err }

// Without room for the copy, the error says so.
func TestTextWithoutRoom(t *testing.T) {
	path := writeAll(t, map[string]string{"a.gz": zipped("abc")}) + "/a.gz"
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	must.Refuse(OpenText(oneFile(path), nil))(t, "can't be copied as UTF-8 to a temporary file", "set TMPDIR to a folder with room")
	full := errors.New("no space left on device")
	c := textCopy{out: bufio.NewWriterSize(fullDisk{full}, 16)}
	err := c.add(path, TextFiles{})
	for err == nil {
		err = c.put('a')
	}
	must.Fail(t, err, "can't be copied as UTF-8 to a temporary file: no space left on device: make room")
}

// FuzzTextFiles opens random bytes as a text by several names.
func FuzzTextFiles(f *testing.F) {
	names := []string{"a.txt", "a.jsonl", "a.txt.gz"}
	encodings := []string{"", "windows-1252", "utf-16le", "shift_jis"}
	for _, s := range []string{"a\n", "{\"text\": \"a\\ud834\\udd1e\"}\n", "{\"text\": 1}", "\xff\xfea\x00", zipped("{\"text\": \"a\"}"), "\ufeff{}"} {
		for name := range names {
			for encoding := range encodings {
				f.Add([]byte(s), name, encoding)
			}
		}
	}
	dir := f.TempDir()
	f.Setenv("TMPDIR", dir)
	f.Fuzz(func(t *testing.T, content []byte, name, encoding int) {
		if name < 0 || name >= len(names) || encoding < 0 || encoding >= len(encodings) {
			return
		}
		path := filepath.Join(t.TempDir(), names[name])
		must.Do(t, os.WriteFile(path, content, 0o666))
		text, err := OpenText(TextFiles{Paths: []string{path}, Encoding: encodings[encoding]}, nil)
		if err != nil {
			return
		}
		defer text.Close()
		whole, err := io.ReadAll(io.NewSectionReader(text.source, 0, text.Size()))
		if err != nil || !utf8.Valid(whole) || len(whole) == 0 {
			t.Fatalf("the text is %q, error %v", whole, err)
		}
		checkWindow(t, text, []rune(string(whole)), 0, text.Len())
	})
}
