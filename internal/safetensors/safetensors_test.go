package safetensors

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/heed-go/heed/internal/atomicfile"
)

// file is the bytes of a file with that header and those values.
func file(header string, values ...byte) []byte {
	n := len(header)
	prefix := []byte{byte(n), byte(n >> 8), byte(n >> 16), 0, 0, 0, 0, 0}
	return slices.Concat(prefix, []byte(header), values)
}

func read(b []byte) ([]Tensor, map[string]string, error) {
	return Read(bytes.NewReader(b), int64(len(b)))
}

func write(t *testing.T, tensors []Tensor, metadata map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, tensors, metadata); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bits are a tensor's values, so that NaNs compare.
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

// same says whether two lists hold the same tensors, bit for bit, in whatever order.
func same(a, b []Tensor) bool {
	byName := func(x, y Tensor) int { return strings.Compare(x.Name, y.Name) }
	return slices.EqualFunc(slices.SortedFunc(slices.Values(a), byName), slices.SortedFunc(slices.Values(b), byName), func(x, y Tensor) bool {
		return x.Name == y.Name && x.Dtype() == y.Dtype() && slices.Equal(x.Shape, y.Shape) && slices.Equal(bits(x), bits(y))
	})
}

// The bytes of this file were put together by hand, from the format's description.
func TestGolden(t *testing.T) {
	golden := "\x58\x00\x00\x00\x00\x00\x00\x00" + // the header's length, 88
		`{"__metadata__":{"k":"v"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}` + // 81 bytes
		"       " + // padding to 88
		"\x00\x00\x80\x3f" + // 1, which is 0x3f800000
		"\x00\x00\x20\xc0" // -2.5, which is 0xc0200000
	tensors := []Tensor{{Name: "w", Shape: []int{1, 2}, Data: []float32{1, -2.5}}}
	metadata := map[string]string{"k": "v"}

	if got := write(t, tensors, metadata); string(got) != golden {
		t.Errorf("got  %q\nwant %q", got, golden)
	}
	gotTensors, gotMetadata, err := read([]byte(golden))
	if err != nil || !same(gotTensors, tensors) || !maps.Equal(gotMetadata, metadata) {
		t.Errorf("got %v, %v, %v, want %v, %v", gotTensors, gotMetadata, err, tensors, metadata)
	}
}

// samples are tensors of every kind that can be written.
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
		{"", []int{1}, []float32{math.Float32frombits(0x7fc01234)}}, // a NaN with something to say
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
	if err != nil {
		t.Fatal(err)
	}
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
		{"two of a name", []Tensor{{"a", []int{1}, one}, {"a", []int{1}, []float64{1}}}, nil, `two tensors named "a"`},
		{"reserved name", []Tensor{{"__metadata__", []int{1}, one}}, nil, "the format uses that name"},
		{"name not UTF-8", []Tensor{{"\xff", []int{1}, one}}, nil, "isn't UTF-8"},
		{"metadata not UTF-8", nil, map[string]string{"a": "\xff"}, "isn't UTF-8"},
		{"too few values", []Tensor{{"a", []int{2, 3}, one}}, nil, "shape [2 3] has 6 values, but Data has 1"},
		{"negative size", []Tensor{{"a", []int{-1, -1}, one}}, nil, "can't be negative"},
		{"overflow to 1", []Tensor{{"a", []int{math.MaxInt, math.MaxInt}, one}}, nil, "more bytes than can be addressed"},
		{"type", []Tensor{{"a", []int{1}, []int32{1}}}, nil, "got []int32"},
		{"no data", []Tensor{{"a", []int{0}, nil}}, nil, "got <nil>"},
		{"header too long", nil, map[string]string{"a": strings.Repeat("a", maxHeader+1)}, "a header may have 100000000"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var b bytes.Buffer
			err := Write(&b, test.tensors, test.metadata)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
			if b.Len() > 0 {
				t.Errorf("%d bytes were written", b.Len())
			}
		})
	}
}

// limited is a writer that is full after some bytes.
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
			t.Errorf("with room for %d bytes: got error %v, want %v", room, err, io.ErrShortWrite)
		}
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.safetensors")
	if _, _, err := ReadFile(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v for a missing file", err)
	}
	if _, _, err := ReadFile(filepath.Dir(path)); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "regular file") {
		t.Errorf("got error %v for a folder", err)
	}
	b := write(t, samples(), nil)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if tensors, _, err := ReadFile(path); err != nil || !same(tensors, samples()) {
		t.Errorf("got %v, %v", tensors, err)
	}
	if err := os.WriteFile(path, b[:len(b)-1], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadFile(path); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), path) {
		t.Errorf("got error %v for a file cut short, want %v with its path", err, ErrFormat)
	}
}

func TestReadReturnsTheReadersError(t *testing.T) {
	b := write(t, samples(), nil)
	for _, n := range []int{0, 4, 20, len(b) - 1} {
		r := io.MultiReader(bytes.NewReader(b[:n]), iotest.ErrReader(os.ErrDeadlineExceeded))
		_, _, err := Read(r, int64(len(b)))
		if !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ErrFormat) {
			t.Errorf("after %d bytes: got error %v, want the reader's, and not %v", n, err, ErrFormat)
		}
	}
}

// TestReadFileWhileReplaced reads a file that is replaced all the time by one of another size: every read is of one of
// them, whole.
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
