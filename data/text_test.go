package data

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
)

// vocabOf returns the vocabulary of a text, or nil if the text has tokens.
func vocabOf(t *Text) *tokenizer.Vocab {
	v, _ := t.Tokenizer().(*tokenizer.Vocab)
	return v
}

func TestOpenText(t *testing.T) {
	tests := []struct{ name, text, vocab string }{
		{"one character", "x", "x"},
		{"sorted by code point", "b a\né世A", "\n Aabé世"},
		{"line ends and NUL", "a\ufeff\r\n\ufffd\x00", "\x00\n\ra\ufeff\ufffd"},
		{"exactly one stride", strings.Repeat("世", stride), "世"},
		{"one more", strings.Repeat("世", stride) + "é", "é世"},
		{"last stride bytes have two bytes per character", strings.Repeat("a", stride) + strings.Repeat("éè", stride/4), "aèé"},
		{"long", strings.Repeat("aé世𝄞", 5000), "aé世𝄞"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			text := openFile(t, write(t, tc.text), nil)
			if vocabOf(text).Symbols() != tc.vocab {
				t.Errorf("got symbols %q, want %q", vocabOf(text).Symbols(), tc.vocab)
			}
			checkWindows(t, text, tc.text)
		})
	}
}

func TestOpenTextErrors(t *testing.T) {
	dir := t.TempDir()
	tests := []struct{ name, path, want string }{
		{"missing", filepath.Join(dir, "none.txt"), "no such file or directory"},
		{"in no directory", filepath.Join(dir, "none", "none.txt"), "no such file or directory"},
		{"no name", "", "no such file or directory"},
		{"a directory", dir, "is a directory without files to read: give a text file, or a directory of text files"},
		{"empty", write(t, ""), "it is empty"},
		{"invalid", write(t, "né\xff"), "not UTF-8: the byte at offset 3"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			text, err := OpenText(oneFile(tc.path), nil)
			must.Fail(t, err, tc.want, tc.path)
			if text != nil {
				t.Error("OpenText returned a text and an error")
			}
		})
	}
	if _, err := OpenText(oneFile(tests[0].path), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got error %v, want fs.ErrNotExist", err)
	}
}

func TestOpenTextUnreadable(t *testing.T) {
	path := write(t, "secret")
	must.Do(t, os.Chmod(path, 0))
	if f, err := os.Open(path); err == nil {
		f.Close()
		t.Skip("this user may read any file")
	}
	_, err := OpenText(oneFile(path), nil)
	must.Fail(t, err, path)
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got error %v, want fs.ErrPermission", err)
	}
}

func TestOpenTextNotRegular(t *testing.T) {
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Skipf("no device at %s", os.DevNull)
	}
	must.Refuse(OpenText(oneFile(os.DevNull), nil))(t, os.DevNull, "isn't a regular file")
}

// The error has the offset of the first bad byte, even if the byte isn't in the first buffer of the reader.
func TestInvalidUTF8Offset(t *testing.T) {
	for _, n := range []int{0, 1, stride, 1<<16 - 2, 1<<16 - 1, 1 << 16, 70_000} {
		for _, bad := range []string{"\xff", "\xe4\xb8", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"} {
			for _, after := range []string{"", "abc"} {
				content := strings.Repeat("a", n) + bad + after
				_, err := newText("bad", textSource{ReaderAt: strings.NewReader(content), size: int64(len(content))}, nil)
				var invalid *tokenizer.InvalidUTF8Error
				if !errors.As(err, &invalid) || invalid.Offset != int64(n) {
					t.Errorf("%d bytes, then %q: got error %v, want offset %d", n, bad, err, n)
				}
			}
		}
	}
}

func TestOpenTextOfVocab(t *testing.T) {
	vocab := must.Get(tokenizer.NewVocab("zyxcbaé"))(t)
	text := openFile(t, write(t, "abcé"), vocab)
	ids := make([]int, 4)
	if err := text.Window(ids, 0); err != nil || !slices.Equal(ids, []int{5, 4, 3, 6}) || vocabOf(text) != vocab {
		t.Errorf("got ids %v, %v, want [5 4 3 6] and the same Vocab", ids, err)
	}

	path := write(t, strings.Repeat("é", 3000)+"!")
	_, err := OpenText(oneFile(path), vocab)
	must.Fail(t, err, path, `symbol '!' at position 3000 (from 0) isn't one of the 7 known: "zyxcbaé"`)
	var unknown *tokenizer.UnknownSymbolError
	if !errors.As(err, &unknown) || unknown.Symbol != '!' || unknown.Position != 3000 {
		t.Errorf("got %v", err)
	}
	for _, missing := range []*tokenizer.Vocab{nil, {}} {
		must.Refuse(OpenText(oneFile(path), missing))(t, path, "no symbols")
	}
}

func TestWindowOutOfRange(t *testing.T) {
	text := textOf(t, "abcdef")
	for _, tc := range []struct{ n, start int }{{1, -1}, {7, 0}, {1, 6}, {0, 7}, {3, 4}, {1, math.MaxInt}, {1, math.MinInt}} {
		must.Fail(t, text.Window(make([]int, tc.n), tc.start), "has 6 characters: there is no window of")
	}
	for _, start := range []int{0, 6} {
		if err := text.Window(nil, start); err != nil {
			t.Errorf("an empty window at %d: %v", start, err)
		}
	}
}

// Window returns an error if the file became shorter or has other characters, or if the disk fails.
func TestFileChanges(t *testing.T) {
	original := strings.Repeat("ab", 5000)
	path := write(t, original)
	text := openFile(t, path, nil)
	ids := make([]int, 100)
	must.Do(t, os.Truncate(path, 5050))
	if err := text.Window(ids, 4900); err != nil {
		t.Errorf("a window in the unchanged part: error %v", err)
	}
	for _, start := range []int{5000, 9000} {
		must.Fail(t, text.Window(ids, start), path, "the file changed while it was open")
	}
	must.Refuse(text.ValidationBatch([]int{0, 1}, 10, 0))(t, "the file changed")

	for _, other := range []string{strings.Repeat("ac", 5000), strings.Repeat("\xff", 10_000), ""} {
		text := textOf(t, original)
		text.source = strings.NewReader(other)
		must.Fail(t, text.Window(ids, 50), "the file changed")
	}
	must.Refuse(newText("short", textSource{ReaderAt: strings.NewReader("abc"), size: 4}, nil))(t, `"short"`, "the file changed")

	broken := errors.New("bad sector")
	text = textOf(t, original)
	text.source = failing{broken}
	if err := text.Window(ids, 50); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, err := newText("broken", textSource{ReaderAt: failing{broken}, size: 10}, nil); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

func TestWindowConcurrently(t *testing.T) {
	s := strings.Repeat("aé世𝄞", 3000)
	text := openFile(t, write(t, s), nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { checkWindows(t, text, s) })
	}
	wg.Wait()
}

// A Text needs memory only for its index, not for the characters.
func TestTextStaysOnDisk(t *testing.T) {
	const size = 1 << 23
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	text := must.Get(newText("long", textSource{ReaderAt: letterAt{}, size: size}, nil))(t)
	ids := make([]int, 256)
	for start := 0; start < text.Len()-len(ids); start += text.Len() / 50 {
		must.Do(t, text.Window(ids, start))
		for i, id := range ids {
			if id != (start+i)%26 {
				t.Fatalf("character %d: got id %d, want %d", start+i, id, (start+i)%26)
			}
		}
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > size/2 {
		t.Errorf("%d bytes allocated for a text of %d bytes, want at most half", got, size)
	}
}

// letterAt is an endless text that repeats the alphabet.
type letterAt struct{}

func (letterAt) ReadAt(p []byte, offset int64) (int, error) {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	for n := copy(p, letters[offset%26:]); n < len(p); {
		n += copy(p[n:], letters)
	}
	return len(p), nil
}

func FuzzText(f *testing.F) {
	f.Add([]byte("Hello, 世界\n"), 3, 4)
	f.Add([]byte("\xff"), 0, 1)
	f.Add([]byte("a\xe4\xb8"), 0, 1)
	f.Add([]byte("\ufeff\ufffd\x00"), -1, math.MaxInt)
	f.Add([]byte(strings.Repeat("aé世𝄞", 1000)), 1020, 2000)
	f.Fuzz(func(t *testing.T, content []byte, start, n int) {
		text, err := newText("fuzz", textSource{ReaderAt: bytes.NewReader(content), size: int64(len(content))}, nil)
		want := []rune(string(content))
		if valid := len(content) > 0 && string(want) == string(content); (err == nil) != valid {
			t.Fatalf("%q is valid: %t, but the error is %v", content, valid, err)
		}
		if err != nil {
			return
		}
		if vocabOf(text).Symbols() != string(distinct(want)) || text.Len() != len(want) {
			t.Fatalf("got %d characters with symbols %q, want %d and %q", text.Len(), vocabOf(text).Symbols(), len(want), string(distinct(want)))
		}
		checkWindow(t, text, want, 0, len(want))
		inside := start >= 0 && start <= len(want) && n >= 0 && n <= len(want)-start
		if inside {
			checkWindow(t, text, want, start, n)
		} else if err := text.Window(make([]int, min(max(n, 0), 10_000)), start); err == nil && n > 0 && n <= 10_000 {
			t.Fatalf("a window of length %d at %d, but the text has %d characters: no error", n, start, len(want))
		}
		if _, err := text.TrainBatch(1, 0, 0, 2, 1+n&0xff); (err == nil) != (text.trainLen() > 1+n&0xff) {
			t.Fatalf("TrainBatch of %d characters with length %d: error %v", len(want), 1+n&0xff, err)
		}
	})
}

// checkWindows compares windows from all parts of a text with the same windows of s.
func checkWindows(t *testing.T, text *Text, s string) {
	t.Helper()
	want := []rune(s)
	if text.Len() != len(want) {
		t.Errorf("got %d characters, want %d", text.Len(), len(want))
		return
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		start := rng.IntN(len(want) + 1)
		checkWindow(t, text, want, start, rng.IntN(len(want)-start+1))
	}
	for start := 0; start < len(want); start += stride - 1 {
		checkWindow(t, text, want, start, min(2, len(want)-start))
	}
	checkWindow(t, text, want, 0, len(want))
}

func checkWindow(t *testing.T, text *Text, want []rune, start, n int) {
	t.Helper()
	ids := make([]int, n)
	if err := text.Window(ids, start); err != nil {
		t.Error(err)
		return
	}
	if got, err := vocabOf(text).Decode(ids); err != nil || got != string(want[start:start+n]) {
		t.Errorf("the window of length %d at %d: got %q, %v", n, start, got, err)
	}
}

// write writes content to a new file and returns its path.
func write(t testing.TB, content string) string {
	t.Helper()
	f := must.Get(os.CreateTemp(t.TempDir(), "*.txt"))(t)
	must.Get(io.WriteString(f, content))(t)
	must.Do(t, f.Close())
	return f.Name()
}

func oneFile(path string) TextFiles { return TextFiles{Paths: []string{path}} }

// openFile opens the text at path, and closes it at the end of the test.
func openFile(t testing.TB, path string, tok tokenizer.Tokenizer) *Text {
	t.Helper()
	text := must.Get(OpenText(oneFile(path), tok))(t)
	t.Cleanup(func() { text.Close() })
	return text
}

// textOf returns a Text that reads from a string instead of a file.
func textOf(t testing.TB, content string) *Text {
	t.Helper()
	return must.Get(newText("memory", textSource{ReaderAt: strings.NewReader(content), size: int64(len(content))}, nil))(t)
}
