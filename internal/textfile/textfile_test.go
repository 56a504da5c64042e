package textfile

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"golang.org/x/text/encoding/htmlindex"
)

// in returns s in an encoding.
func in(t testing.TB, encoding, s string) string {
	t.Helper()
	e := must.Get(htmlindex.Get(encoding))(t)
	return must.Get(e.NewEncoder().String(s))(t)
}

// zipped returns s in gzip, as one member per argument.
func zipped(members ...string) string {
	var b bytes.Buffer
	for _, m := range members {
		z := gzip.NewWriter(&b)
		io.WriteString(z, m)
		z.Close()
	}
	return b.String()
}

// open opens a new file.
func open(t *testing.T, content, encoding string) (*File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(path, []byte(content), 0o644))
	f, err := Open(path, encoding)
	if err == nil {
		t.Cleanup(func() { f.Close() })
	}
	return f, err
}

func TestOpen(t *testing.T) {
	const text = "Größe\tx\r\n\ufffd𝄞\n"
	long := strings.Repeat("なに\n", Buffer)
	for _, test := range []struct {
		name, content, encoding, want, coding string
		mark, plain                           bool
	}{
		{name: "plain", content: text, want: text, coding: "UTF-8", plain: true},
		{name: "bytes that aren't UTF-8", content: "a\xff\x00", want: "a\xff\x00", coding: "UTF-8", plain: true},
		{name: "mark", content: Mark + text, want: text, coding: "UTF-8", mark: true, plain: true},
		{name: "UTF-8 by name", content: text, encoding: "UTF8", want: text, coding: "UTF-8", plain: true},
		{name: "only a mark", content: Mark, coding: "UTF-8", mark: true, plain: true},
		{name: "gzip", content: zipped(text), want: text, coding: "UTF-8"},
		{name: "members of gzip", content: zipped("Grö", "", "ße"), want: "Größe", coding: "UTF-8"},
		{name: "nothing in gzip", content: zipped(""), coding: "UTF-8"},
		{name: "gzip of UTF-16", content: zipped("\xfe\xff" + in(t, "utf-16be", text)), want: text, coding: "utf-16be", mark: true},
		{name: "UTF-16", content: "\xff\xfe" + in(t, "utf-16le", text), want: text, coding: "utf-16le", mark: true},
		{name: "UTF-16 without a mark", content: in(t, "utf-16le", text), encoding: "utf-16", want: text, coding: "utf-16le"},
		{name: "a mark overrides the encoding", content: Mark + "ä", encoding: "latin1", want: "ä", coding: "UTF-8", mark: true, plain: true},
		{name: "windows-1252", content: "Gr\xf6\xdfe \x80", encoding: "cp1252", want: "Größe €", coding: "windows-1252"},
		{name: "windows-1252 that quotes UTF-8", content: "\xc3\xbc, \xc3\xb6 and \xc3\xa4 stand for \xfc", encoding: "cp1252", want: "Ã¼, Ã¶ and Ã¤ stand for ü", coding: "windows-1252"},
		{name: "ASCII", content: "abc\n", encoding: "cp1252", want: "abc\n", coding: "windows-1252"},
		{name: "KOI8-R", content: in(t, "koi8-r", "да"), encoding: "KOI8-R", want: "да", coding: "koi8-r"},
		{name: "Shift JIS", content: in(t, "shift_jis", long), encoding: "sjis", want: long, coding: "shift_jis"},
		{name: "ISO-2022-JP", content: in(t, "iso-2022-jp", long), encoding: "iso-2022-jp", want: long, coding: "iso-2022-jp"},
		{name: "GB 18030", content: in(t, "gb18030", text), encoding: "gb18030", want: text, coding: "gb18030"},
		{name: "two characters from one code", content: "\x88\x62x", encoding: "big5", want: "\u00ca\u0304x", coding: "big5"},
		{name: "half a character in UTF-16", content: "\xff\xfea\x00\x00\xd8b\x00", want: "a\xffb", coding: "utf-16le", mark: true},
		{name: "half a unit in UTF-16", content: "\xff\xfea\x00b", want: "a\xff", coding: "utf-16le", mark: true},
		{name: "wrong in Shift JIS", content: "ab\x82\xa0\xff!", encoding: "shift_jis", want: "abあ\xff!", coding: "shift_jis"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := must.Get(open(t, test.content, test.encoding))(t)
			got, err := io.ReadAll(f)
			if string(got) != test.want || err != nil {
				t.Errorf("got %.200q, error %v, want %.200q", got, err, test.want)
			}
			if f.Encoding.String() != test.coding || f.Mark != test.mark || (f.Plain != nil) != test.plain || f.Size != int64(len(test.content)) {
				t.Errorf("got encoding %s, mark %t, plain %t, size %d; want %s, %t, %t, %d",
					f.Encoding, f.Mark, f.Plain != nil, f.Size, test.coding, test.mark, test.plain, len(test.content))
			}
			if want := fmt.Sprintf("%x", sha256.Sum256([]byte(test.content))); f.Sum() != want {
				t.Errorf("got SHA-256 %s, want %s", f.Sum(), want)
			}
		})
	}
}

// A file that grows ends where it ended when it was opened.
func TestOpenGrowing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(path, []byte("a\n"), 0o644))
	f := must.Get(Open(path, ""))(t)
	defer f.Close()
	must.Get(f.ReadByte())(t)
	must.Do(t, os.WriteFile(path, []byte("a\nb\n"), 0o644))
	if rest, err := io.ReadAll(f); string(rest) != "\n" || err != nil {
		t.Errorf("after the first byte: read %q, error %v, want only the byte that the file had", rest, err)
	}
}

func TestOpenErrors(t *testing.T) {
	text := strings.Repeat("The quick brown fox.\n", 1000)
	z := zipped(text)
	for _, test := range []struct{ name, content, encoding, want string }{
		{"empty", "", "", "it is empty"},
		{"zip", "PK\x03\x04\x00", "", "it is a zip file"},
		{"Excel", "\xd0\xcf\x11\xe0\xa1", "", "save the sheet as CSV"},
		{"Parquet", "PAR1\x15\x04\x00", "", "it is Parquet: make a CSV of it"},
		{"Arrow", "ARROW1\x00\x00", "", "it is Arrow or Feather"},
		{"SQLite", "SQLite format 3\x00", "", "it is a database of SQLite"},
		{"PDF", "%PDF-1.7\n", "", "it is PDF"},
		{"zip in gzip", zipped("PK\x03\x04\x00"), "", "it is a zip file"},
		{"gzip in gzip", zipped(z), "", "it is gzip within gzip"},
		{"only magic bytes", z[:2], "", "damaged or incomplete: unexpected EOF"},
		{"half a header", z[:9], "", "damaged or incomplete: unexpected EOF"},
		{"half of gzip", z[:len(z)/2], "", "damaged or incomplete: unexpected EOF"},
		{"no checksum", z[:len(z)-8], "", "damaged or incomplete: unexpected EOF"},
		{"wrong checksum", z[:len(z)-8] + "\x00" + z[len(z)-7:], "", "damaged or incomplete: gzip: invalid checksum"},
		{"other bytes after gzip", z + "more text after it", "", "damaged or incomplete: gzip: invalid header"},
		{"half of a second member", z + z[:len(z)/2], "", "damaged or incomplete: unexpected EOF"},
		{"UTF-8, not Windows", "Gr\u00f6\u00dfe f\u00fcr\n", "cp1252", "it is UTF-8, not windows-1252: give --encoding utf-8"},
		{"long UTF-8, not GBK", "x" + strings.Repeat("\u4e00", Buffer), "gbk", "it is UTF-8, not gbk"}, // the buffer ends within a character
		{"UTF-8 in gzip", zipped("äöü"), "koi8-r", "it is UTF-8, not koi8-r"},
		{"unknown encoding", text, "cp1253x", `encoding "cp1253x" is unknown: the names are listed at https://encoding.spec.whatwg.org`},
		{"encoding that can't be decoded", text, "hz-gb-2312", "is unknown"},
		{"encoding with this name", text, "replacement", "is unknown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, err := open(t, test.content, test.encoding)
			if err == nil {
				_, err = io.ReadAll(f)
			}
			must.Fail(t, err, test.want)
		})
	}
	must.Refuse(Open(t.TempDir(), ""))(t, "it is a directory")
	must.Refuse(Open(os.DevNull, ""))(t, "isn't a regular file")
}

// A small file of gzip doesn't fill memory or the disk.
func TestGzipHasALimit(t *testing.T) {
	if got, err := io.ReadAll(&inflated{strings.NewReader("abcdef"), 6}); err != nil || string(got) != "abcdef" {
		t.Errorf("6 bytes with a limit of 6: got %q, error %v", got, err)
	}
	must.Refuse(io.ReadAll(&inflated{strings.NewReader("abcdef"), 5}))(t, "more than 256 MiB and more than 100 times the size of the file: if this is right, gunzip it first")
}

// If the end of a gzip file gives a size that is too large, Open returns the error, before anyone keeps the text.
func TestGzipIsJudgedFirst(t *testing.T) {
	if testing.Short() {
		t.Skip("it packs 257 MiB")
	}
	var packed bytes.Buffer
	z := must.Get(gzip.NewWriterLevel(&packed, gzip.BestSpeed))(t)
	zeros := make([]byte, 1<<20)
	for range mostInflated>>20 + 1 {
		z.Write(zeros)
	}
	z.Close()
	must.Refuse(open(t, packed.String(), ""))(t, "more than 256 MiB")
	must.Refuse(open(t, packed.String()[:packed.Len()/2]+"\xff\xff\xff\xff", ""))(t, "damaged or incomplete")
}

func TestNotText(t *testing.T) {
	for _, test := range []struct {
		content, encoding string
		offset            int64 // argument of NotText
		want              string
	}{
		{"ab\xff", "", 2, "not UTF-8: the byte at offset 2 (from 0) is no part of a character: " + Advice},
		{"\xff\xfea\x00\x00\xd8", "", 0, "not utf-16le: the byte at offset 4 "},
		{"ab\x82\xa0\xff\xff", "sjis", 9, "not shift_jis: the byte at offset 4 (from 0) is no part of a character: " + Advice},
		{strings.Repeat("\x82\xa0", Buffer) + "a\x82", "sjis", 9, fmt.Sprintf("offset %d ", 2*Buffer+1)},
		{zipped(strings.Repeat("\xfd\xff", Buffer) + "\x00\xd8"), "utf-16le", 0, fmt.Sprintf("not utf-16le: the byte at offset %d ", 2*Buffer)},
	} {
		f, err := open(t, test.content, test.encoding)
		if err == nil {
			_, err = io.ReadAll(f)
		}
		must.Do(t, err)
		must.Fail(t, f.NotText(test.offset), test.want)
	}
}

func TestAppend(t *testing.T) {
	for _, test := range []struct{ encoding, text, want string }{
		{"", "ä\xff", "_ä\xff"},
		{"latin1", "ä€\xff", "_\xe4\x80?"},
		{"utf-16be", "ä\xff\xff", "_\x00\xe4\xff\xfd"},
		{"shift_jis", "あ\n", "_\x82\xa0\n"},
	} {
		e := must.Get(Named(test.encoding))(t)
		if got, err := e.Append([]byte("_"), []byte(test.text)); string(got) != test.want || err != nil {
			t.Errorf("%s: got %q, error %v, want %q", e, got, err, test.want)
		}
	}
	e := must.Get(Named("latin1"))(t)
	must.Refuse(e.Append(nil, []byte("a世")))(t, "windows-1252 has no character '世': convert the file to UTF-8 first")
}

func TestEnding(t *testing.T) {
	for path, want := range map[string]string{"a.TSV": ".tsv", "b/a.tsv.gz": ".tsv", "a.CSV.GZ": ".csv", "a.gz": "", "a": "", "x.y/a": ""} {
		if got := Ending(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

// FuzzNew reads random bytes in several encodings, and checks that characters return to the same bytes.
func FuzzNew(f *testing.F) {
	names := []string{"", "windows-1252", "shift_jis", "gb18030", "utf-16le", "iso-2022-jp", "big5", "euc-kr", "koi8-r"}
	for _, s := range []string{"ab\n", "\xff\xfea\x00", "\x82\xa0\xff", zipped("abc"), zipped("a")[:15], "\x1b$B$\"\x1b(B", "PK\x03\x04", "\x84\x31\xa4\x37\xfd\xff"} {
		for i := range names {
			f.Add([]byte(s), i)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte, encoding int) {
		if encoding < 0 || encoding >= len(names) || len(content) > 1<<15 {
			return
		}
		file, err := New(bytes.NewReader(content), int64(len(content)), names[encoding])
		if err != nil {
			return
		}
		text, err := io.ReadAll(file)
		if err != nil || file.Encoding.UTF8() {
			return
		}
		d := file.decoder
		if bad := bytes.IndexByte(text, 0xff) >= 0; bad != (d.bad >= 0) || d.bad >= d.offset && bad {
			t.Fatalf("%q: a wrong byte at %d of %d", text, d.bad, d.offset)
		}
		again, err := file.Encoding.Append(nil, text)
		if err != nil {
			return // some encodings decode characters that they don't encode
		}
		back, err := New(bytes.NewReader(again), int64(len(again)), file.Encoding.name)
		if err != nil {
			return // the characters may look like gzip
		}
		got, err := io.ReadAll(back)
		if want := bytes.ToValidUTF8(text, []byte("?")); err == nil && d.bad < 0 && !back.Mark && !bytes.Equal(got, want) {
			t.Fatalf("%s: got %q, want %q", file.Encoding, got, want)
		}
	})
}
