package safetensors

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/must"
)

// file returns the bytes of a file with the given header and values.
func file(header string, values ...byte) []byte {
	n := len(header)
	prefix := []byte{byte(n), byte(n >> 8), byte(n >> 16), 0, 0, 0, 0, 0}
	return slices.Concat(prefix, []byte(header), values)
}

func read(b []byte) ([]Tensor, map[string]string, error) {
	return Read(bytes.NewReader(b), int64(len(b)))
}

// refused fails the test unless err is ErrFormat with the text want.
func refused(t *testing.T, err error, want string) {
	t.Helper()
	must.Fail(t, err, want)
	if !errors.Is(err, ErrFormat) {
		t.Errorf("got error %v, want %v", err, ErrFormat)
	}
}

func write(t *testing.T, tensors []Tensor, metadata map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, Write(&b, tensors, metadata))
	return b.Bytes()
}

// bits returns a tensor's values as bits, so that NaNs can be compared.
func bits(x Tensor) (b []uint64) {
	switch d := x.Data.(type) {
	case []float32:
		for _, v := range d {
			b = append(b, uint64(math.Float32bits(v)))
		}
	case []float64:
		for _, v := range d {
			b = append(b, math.Float64bits(v))
		}
	case []int64:
		for _, v := range d {
			b = append(b, uint64(v))
		}
	}
	return b
}

// same reports whether two lists hold the same tensors, bit for bit, in any order.
func same(a, b []Tensor) bool {
	byName := func(x, y Tensor) int { return strings.Compare(x.Name, y.Name) }
	return slices.EqualFunc(slices.SortedFunc(slices.Values(a), byName), slices.SortedFunc(slices.Values(b), byName), func(x, y Tensor) bool {
		return x.Name == y.Name && x.Dtype() == y.Dtype() && slices.Equal(x.Shape, y.Shape) && slices.Equal(bits(x), bits(y))
	})
}

// TestGolden compares files with bytes that were written by hand from the format's description.
func TestGolden(t *testing.T) {
	values := "\x00\x00\x80\x3f" + // 0x3f800000
		"\x00\x00\x20\xc0" // 0xc0200000
	golden := func(n string, metadata, padding string) string {
		return n + "\x00\x00\x00\x00\x00\x00\x00" + `{"__metadata__":{` + metadata + `"k":"v"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}` + padding + values
	}
	others := golden("\x58", "", "       ")                                           // an 81-byte header, padded to 88
	ours := golden("\xa8", `"heed.sha256":"`+noDigest+`",`, "      ")                 // a 162-byte header, padded to 168
	const digest = "3ccafaedfc5524cc79585923b17e983bfed68383ef0167b33192357e5f9316d0" // by Python's hashlib
	ours = strings.Replace(ours, noDigest, digest, 1)

	tensors := []Tensor{{Name: "w", Shape: []int{1, 2}, Data: []float32{1, -2.5}}}
	metadata := map[string]string{"k": "v"}
	if got := write(t, tensors, metadata); string(got) != ours {
		t.Errorf("got  %q\nwant %q", got, ours)
	}
	for _, golden := range []string{others, ours} {
		gotTensors, gotMetadata, err := read([]byte(golden))
		if err != nil || !same(gotTensors, tensors) || !maps.Equal(gotMetadata, metadata) {
			t.Errorf("got %v, %v, %v, want %v, %v", gotTensors, gotMetadata, err, tensors, metadata)
		}
	}
}

// TestFlippedBits checks that a flipped bit gives an error, unless it is in the checksum's key. Then Read returns the
// right tensors and one more metadata entry.
func TestFlippedBits(t *testing.T) {
	tensors := []Tensor{{"a", []int{2}, []float32{1, 2}}, {"b", []int{1, 1}, []int64{3}}, {"c", []int{1}, []float32{0}}}
	metadata := map[string]string{"heed.state": `{"steps":7}`, "a": noDigest}
	good := write(t, tensors, metadata)
	unseen := 0
	for i := range good {
		for bit := range 8 {
			b := slices.Clone(good)
			b[i] ^= 1 << bit
			got, gotMetadata, err := read(b)
			switch {
			case err != nil && !errors.Is(err, ErrFormat):
				t.Errorf("bit %d of byte %d: got error %v, want %v", bit, i, err, ErrFormat)
			case err == nil:
				unseen++ // with a different key, the checksum is ordinary metadata
				if !same(got, tensors) || len(gotMetadata) != 3 || gotMetadata["heed.state"] != metadata["heed.state"] {
					t.Errorf("bit %d of byte %d: got %v and %q, want an error, or the same tensors and one more metadata entry", bit, i, got, gotMetadata)
				}
			}
		}
	}
	if limit := 8 * len(digestKey); unseen > limit {
		t.Errorf("%d flips gave no error, want at most the %d bits of the checksum's key", unseen, limit)
	}
}

// TestChecksum checks that a checksum covers the whole file, even if few tensors are wanted, and that Read removes the
// checksum from the metadata.
func TestChecksum(t *testing.T) {
	good := write(t, samples(), map[string]string{digestKey: "mine"})
	_, metadata, err := read(good)
	if err != nil || metadata != nil {
		t.Errorf("got metadata %q and error %v, want neither", metadata, err)
	}
	for name, change := range map[string]func(b []byte) []byte{
		"last value":      func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"a name":          func(b []byte) []byte { return bytes.Replace(b, []byte(`"scalar"`), []byte(`"Scalar"`), 1) },
		"checksum":        func(b []byte) []byte { i := bytes.Index(b, []byte(digestKey)); b[i+len(digestKey)+3] ^= 1; return b },
		"no hexadecimals": func(b []byte) []byte { i := bytes.Index(b, []byte(digestKey)); b[i+len(digestKey)+3] = 'x'; return b },
		"short checksum": func(b []byte) []byte {
			return file(`{"__metadata__":{"heed.sha256":"00"}}`)
		},
		"escaped digits": func(b []byte) []byte {
			return file(`{"__metadata__":{"heed.sha256":"` + strings.Repeat("\\u0030", 64) + `"}}`)
		},
	} {
		b := change(slices.Clone(good))
		t.Run(name, func(t *testing.T) {
			_, _, err := read(b)
			refused(t, err, "SHA-256")
			if f, err := NewFile(bytes.NewReader(b), int64(len(b))); err == nil {
				_, err := f.Tensors(func(name string) bool { return name == "steps" })
				refused(t, err, "SHA-256")
			}
		})
	}
}

// TestSkipChecksum checks that SkipChecksum reads the same values, and compares no checksum.
func TestSkipChecksum(t *testing.T) {
	b := write(t, []Tensor{{"a", []int{2}, []float32{1, 2}}}, nil)
	b[len(b)-1] ^= 0x80
	f := must.Get(NewFile(bytes.NewReader(b), int64(len(b))))(t)
	f.SkipChecksum()
	if got, err := f.Tensors(nil); err != nil || !same(got, []Tensor{{"a", []int{2}, []float32{1, -2}}}) {
		t.Errorf("got %v, %v, want the tensor as it is in the file", got, err)
	}
}

// TestSomeTensors checks that Tensors skips unwanted tensors.
func TestSomeTensors(t *testing.T) {
	want := map[string]bool{"scalar": true, "z": true, "empty": true}
	good := write(t, samples(), nil)
	tensors, _, err := read(good)
	must.Do(t, err)
	wanted := slices.DeleteFunc(slices.Clone(tensors), func(x Tensor) bool { return !want[x.Name] })
	for name, b := range map[string][]byte{"ours": good, "without checksum": bytes.Replace(good, []byte(digestKey), []byte("hood.sha256"), 1)} {
		f := must.Get(NewFile(bytes.NewReader(b), int64(len(b))))(t)
		var names []string
		for _, e := range f.Entries {
			names = append(names, e.Name)
		}
		if len(names) != len(tensors) {
			t.Errorf("%s: the entries are %q, want %d names", name, names, len(tensors))
		}
		if got, err := f.Tensors(func(name string) bool { return want[name] }); err != nil || !same(got, wanted) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, wanted)
		}
		f = must.Get(NewFile(bytes.NewReader(b[:len(b)-40]), int64(len(b))))(t)
		if _, err := f.Tensors(func(name string) bool { return name == "z" }); !errors.Is(err, ErrFormat) {
			t.Errorf("%s, cut short: got error %v, want %v", name, err, ErrFormat)
		}
	}
}

// TestOtherDtypes checks that tensors with dtypes that Tensors doesn't read don't keep it from reading the others, and
// that a wanted one is an error.
func TestOtherDtypes(t *testing.T) {
	for _, dtype := range []string{"BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F4", "X"} {
		b := file(fmt.Sprintf(`{"mask":{"dtype":%q,"shape":[1,2],"data_offsets":[0,2]},"w":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}`, dtype), 1, 0, 0, 0, 0x80, 0x3f)
		f := must.Get(NewFile(bytes.NewReader(b), int64(len(b))))(t)
		got, err := f.Tensors(func(name string) bool { return name == "w" })
		if err != nil || !same(got, []Tensor{{"w", []int{1}, []float32{1}}}) {
			t.Errorf("beside %s: got %v, %v, want the tensor w", dtype, got, err)
		}
		_, _, err = read(b)
		refused(t, err, strconv.Quote(dtype))
	}
}

// TestWriteParts checks that values given in parts make the same file, and that a wrong number of them is an error.
func TestWriteParts(t *testing.T) {
	whole := []Tensor{{"a", []int{2, 3}, []float32{1, 2, 3, 4, 5, 6}}, {"b", []int{3}, []float64{7, 8, 9}}}
	parts := []Tensor{{"a", []int{2, 3}, slices.Chunk(whole[0].Data.([]float32), 4)}, {"b", []int{3}, slices.Chunk(whole[1].Data.([]float64), 2)}}
	if got, want := write(t, parts, nil), write(t, whole, nil); !bytes.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	parts[0].Shape = []int{2, 2}
	must.Fail(t, Write(io.Discard, parts, nil), "has 4 values, but Data has 6")
}

// TestTooLargeForMemory checks that Tensors returns an error, without reading values, if the values don't fit into
// memory.
func TestTooLargeForMemory(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("32-bit systems refuse such a shape earlier")
	}
	const values = int64(1 << 50)
	for _, dtype := range []string{"F32", "F16"} {
		header := fmt.Sprintf(`{"a":{"dtype":%q,"shape":[%d],"data_offsets":[0,%d]}}`, dtype, values, values*widths[dtype])
		b := file(header)
		f := must.Get(NewFile(bytes.NewReader(b), int64(len(b))+values*widths[dtype]))(t)
		must.Refuse(f.Tensors(nil))(t, "this takes 4.19e+06 GiB of memory, but there is only ")
	}
}

// TestOtherFormats checks that if a file has another common format for weights, the error names that format.
func TestOtherFormats(t *testing.T) {
	for want, begin := range map[string]string{
		"a zip archive, as torch.save writes": "PK\x03\x04\x00\x00\x08\x08\x00\x00\x00\x00model/data.pkl",
		"as torch.save wrote before":          "\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.",
		"a GGUF file, which heed doesn't":     "GGUF\x03\x00\x00\x00\x10\x00",
		"a web page, not the file":            "<!DOCTYPE html><html>You need to log in</html>",
		"a Git LFS pointer, not the file":     "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
	} {
		_, _, err := read([]byte(begin))
		refused(t, err, want)
	}
}

// samples returns tensors of every kind that can be written.
func samples() []Tensor {
	long := make([]float32, 2*chunk+1)
	for i := range long {
		long[i] = float32(i)
	}
	return []Tensor{
		{"z", []int{2, 2}, []float32{0, float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, math.MaxFloat32}},
		{"scalar", nil, []float64{math.Pi}},
		{"steps", []int{3}, []int64{math.MinInt64, -1, math.MaxInt64}},
		{"strange", []int{3}, []float64{math.NaN(), math.Inf(1), math.Inf(-1)}},
		{"empty", []int{3, 0, 2}, []float32{}},
		{"", []int{1}, []float32{math.Float32frombits(0x7fc01234)}}, // a NaN with a payload
		{"a \"name\"\n<\\> é 🙂", []int{1}, []float32{5}},
		{"long", []int{len(long)}, long},
	}
}

func TestRoundTrip(t *testing.T) {
	for _, metadata := range []map[string]string{nil, {"format": "heed", "": "", "é<>&": "\"\\\x00\u2028"}} {
		b := write(t, samples(), metadata)
		for name, r := range map[string]io.Reader{"whole": bytes.NewReader(b), "byte by byte": iotest.OneByteReader(bytes.NewReader(b))} {
			tensors, got, err := Read(r, int64(len(b)))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if !same(tensors, samples()) {
				t.Errorf("%s: got %v, want %v", name, tensors, samples())
			}
			if !maps.Equal(got, metadata) {
				t.Errorf("%s: got metadata %q, want %q", name, got, metadata)
			}
		}
	}
}

func TestWriteIsDeterministicAndAligned(t *testing.T) {
	metadata := map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}
	want := write(t, samples(), metadata)
	reversed := samples()
	slices.Reverse(reversed)
	if got := write(t, reversed, metadata); !bytes.Equal(got, want) {
		t.Error("the order of tensors changed the file")
	}
	tensors, _, err := read(want)
	must.Do(t, err)
	var names []string
	for _, x := range tensors {
		names = append(names, x.Name)
	}
	if order := []string{"steps", "scalar", "strange", "", "a \"name\"\n<\\> é 🙂", "empty", "long", "z"}; !slices.Equal(names, order) {
		t.Errorf("got order %q, want %q", names, order)
	}
	if n := int(want[0]) + int(want[1])<<8; n%8 != 0 || want[8] != '{' {
		t.Errorf("the header has %d bytes and begins with %q, want a multiple of 8 and {", n, want[8])
	}
}

func TestWriteRefuses(t *testing.T) {
	one := []float32{1}
	tests := []struct {
		name     string
		tensors  []Tensor
		metadata map[string]string
		want     string
	}{
		{"repeated name", []Tensor{{"a", []int{1}, one}, {"a", []int{1}, []float64{1}}}, nil, `two tensors are named "a"`},
		{"reserved name", []Tensor{{"__metadata__", []int{1}, one}}, nil, "the format uses that name"},
		{"name not UTF-8", []Tensor{{"\xff", []int{1}, one}}, nil, "isn't UTF-8"},
		{"metadata not UTF-8", nil, map[string]string{"a": "\xff"}, "isn't UTF-8"},
		{"too few values", []Tensor{{"a", []int{2, 3}, one}}, nil, "shape [2 3] has 6 values, but Data has 1"},
		{"negative size", []Tensor{{"a", []int{-1, -1}, one}}, nil, "can't be negative"},
		{"overflow to 1", []Tensor{{"a", []int{math.MaxInt, math.MaxInt}, one}}, nil, "more bytes than can be addressed"},
		{"type", []Tensor{{"a", []int{1}, []int32{1}}}, nil, "got []int32"},
		{"no data", []Tensor{{"a", []int{0}, nil}}, nil, "got <nil>"},
		{"header too long", nil, map[string]string{"a": strings.Repeat("a", maxHeader+1)}, "a header may have at most 100000000"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var b bytes.Buffer
			must.Fail(t, Write(&b, test.tensors, test.metadata), test.want)
			if b.Len() > 0 {
				t.Errorf("%d bytes were written, want none", b.Len())
			}
		})
	}
}

// limited is a writer that fails when it has written the number of bytes that it holds.
type limited int

func (l *limited) Write(b []byte) (int, error) {
	if len(b) > int(*l) {
		return int(*l), io.ErrShortWrite
	}
	*l -= limited(len(b))
	return len(b), nil
}

func TestWriteReturnsTheWritersError(t *testing.T) {
	n := len(write(t, samples(), nil))
	for _, room := range []int{0, 8, 100, n - 1} {
		l := limited(room)
		if err := Write(&l, samples(), nil); err != io.ErrShortWrite {
			t.Errorf("a writer that fails after %d bytes: got error %v, want %v", room, err, io.ErrShortWrite)
		}
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.safetensors")
	if _, _, err := ReadFile(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v for a missing file, want %v", err, os.ErrNotExist)
	}
	_, _, err := ReadFile(filepath.Dir(path))
	refused(t, err, "regular file")
	b := write(t, samples(), nil)
	must.Do(t, os.WriteFile(path, b, 0o644))
	if tensors, _, err := ReadFile(path); err != nil || !same(tensors, samples()) {
		t.Errorf("got %v and error %v, want %v", tensors, err, samples())
	}
	must.Do(t, os.WriteFile(path, b[:len(b)-1], 0o644))
	_, _, err = ReadFile(path)
	refused(t, err, path)
}

func TestReadReturnsTheReadersError(t *testing.T) {
	b := write(t, samples(), nil)
	for _, n := range []int{0, 4, 20, len(b) - 1} {
		r := io.MultiReader(bytes.NewReader(b[:n]), iotest.ErrReader(os.ErrDeadlineExceeded))
		_, _, err := Read(r, int64(len(b)))
		if !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ErrFormat) {
			t.Errorf("after %d bytes: got error %v, want the reader's, not %v", n, err, ErrFormat)
		}
	}
}

// TestReadFileWhileReplaced reads a file that is constantly replaced with a file of a different size. Every read must
// return one of the two files without an error.
func TestReadFileWhileReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write := func(n int) {
		err := atomicfile.WriteFile(path, func(w io.Writer) error {
			return Write(w, []Tensor{{Name: "x", Shape: []int{n}, Data: make([]float32, n)}}, nil)
		})
		if err != nil {
			t.Error(err)
		}
	}
	write(1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			write(1 + i%2*1000)
		}
	}()
	for {
		if _, _, err := ReadFile(path); err != nil {
			t.Error(err)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}
