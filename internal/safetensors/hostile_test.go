package safetensors

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// hostile lists files that Read must refuse, each with a part of the error.
var hostile = []struct {
	name string
	file []byte
	want string
}{
	{"empty", nil, "header length: expected 8 bytes, got a file of 0"},
	{"7 bytes", make([]byte, 7), "header length: expected 8 bytes, got a file of 7"},
	{"no header", make([]byte, 8), `header: expected a JSON object, which begins with {, got ""`},
	{"header beyond the file", file(`{}`)[:9], "header length: expected at most the 1 bytes that follow it, got 2"},
	{"header beyond the limit", []byte("\x01\xe1\xf5\x05\x00\x00\x00\x00{}"), "header length: expected at most 100000000 bytes, got 100000001"},
	{"header length negative if signed", []byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"), "got 18446744073709551615"},

	{"not JSON", file(`PK not JSON`), `which begins with {, got "PK not JSON"`},
	{"space before", file(` {}`), `which begins with {, got " {}"`},
	{"an array", file(`[]`), "which begins with {"},
	{"not UTF-8", file("{\"\xff\":1}"), "JSON must be UTF-8"},
	{"half a character", file(`{"\ud800":1}`), "a key has only half of a character"},
	{"unclosed", file(`{"a":`), "malformed JSON: unexpected end"},
	{"comma at the end", file(`{"__metadata__":{},}`), "malformed JSON"},
	{"two objects", file(`{}{}`), "malformed JSON"},
	{"padded with zeros", file("{}\x00\x00"), "malformed JSON"},
	{"deep", file(`{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`), "exceeded max depth"},
	{"deep objects", file(strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)), "exceeded max depth"},
	{"deep within limits", file(`{"a":{"dtype":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}}`), "dtype: expected a string, got an array"},

	{"entry is null", file(`{"a":null}`), `tensor "a": the entry: expected an object, got null`},
	{"entry is a number", file(`{"a":1}`), "expected an object, got the number"},
	{"repeated name", file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`), `"a" is given twice`},
	{"repeated name, escaped", file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"\u0061":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`), `"a" is given twice`},
	{"metadata twice", file(`{"__metadata__":{},"__metadata__":{}}`), `"__metadata__" is given twice`},
	{"metadata key twice", file(`{"__metadata__":{"k":"1","k":"2"}}`), `"k" in "__metadata__" is given twice`},
	{"metadata is no object", file(`{"__metadata__":"x"}`), `__metadata__: expected an object, got the string "x"`},
	{"metadata value is no string", file(`{"__metadata__":{"k":1}}`), `the value of "k" in __metadata__: expected a string`},
	{"metadata value is an object", file(`{"__metadata__":{"k":{}}}`), "expected a string, got an object"},
	{"dtype twice", file(`{"a":{"dtype":"F32","dtype":"F64","shape":[0],"data_offsets":[0,0]}}`), `"dtype" in "a" is given twice`},
	{"empty entry", file(`{"a":{}}`), "expected the three fields dtype, shape and data_offsets, got 0 of them"},
	{"no dtype", file(`{"a":{"shape":[0],"data_offsets":[0,0]}}`), "got 2 of them"},
	{"unknown field", file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0],"strides":[1]}}`), `got "strides"`},
	{"field in capitals", file(`{"a":{"Dtype":"F32","shape":[0],"data_offsets":[0,0]}}`), `got "Dtype"`},

	{"unknown dtype", file(`{"a":{"dtype":"F31","shape":[0],"data_offsets":[0,0]}}`), `tensor "a": dtype: expected F16, BF16, F32, F64 or I64, got "F31"`},
	{"unknown dtype, shape overflows", file(`{"a":{"dtype":"F31","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`), "more bytes than can be addressed"},
	{"unknown dtype, end before begin", file(`{"a":{"dtype":"F31","shape":[1],"data_offsets":[4,0]}}`), "which ends before it begins"},
	{"unknown dtype, overlap", file(`{"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F31","shape":[1],"data_offsets":[2,6]}}`, 0, 0, 0, 0, 0, 0), "overlap"},
	{"too few bytes for booleans", file(`{"a":{"dtype":"BOOL","shape":[4],"data_offsets":[0,2]}}`, 0, 0), "expected 4 bytes for shape [4] of BOOL, got 2"},
	{"dtype not read", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 0), `got "U8"`},
	{"dtype is a number", file(`{"a":{"dtype":32,"shape":[0],"data_offsets":[0,0]}}`), "dtype: expected a string"},

	{"shape is no array", file(`{"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}}`, 0, 0, 0, 0), "shape: expected an array, got the number"},
	{"shape of strings", file(`{"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}}`, 0, 0, 0, 0), `shape: expected integers, got the string "1"`},
	{"shape nested", file(`{"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}}`, 0, 0, 0, 0), "shape: expected integers, got an array"},
	{"negative size", file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 0, 0, 0, 0), `shape: expected integers from 0 to 9223372036854775807, got "-1"`},
	{"two negative sizes", file(`{"a":{"dtype":"F32","shape":[-1,-1],"data_offsets":[0,4]}}`, 0, 0, 0, 0), `got "-1"`},
	{"size with a fraction", file(`{"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}}`, 0, 0, 0, 0), `got "1.0"`},
	{"size with an exponent", file(`{"a":{"dtype":"F32","shape":[1e0],"data_offsets":[0,4]}}`, 0, 0, 0, 0), `got "1e0"`},
	{"size beyond 64 bits", file(`{"a":{"dtype":"F32","shape":[18446744073709551617],"data_offsets":[0,4]}}`, 0, 0, 0, 0), "expected integers from 0"},
	{"shape overflows to 1", file(`{"a":{"dtype":"F32","shape":[9223372036854775807,9223372036854775807],"data_offsets":[0,4]}}`, 0, 0, 0, 0), "more bytes than can be addressed"},
	{"shape overflows to 0", file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`), "more bytes than can be addressed"},
	{"bytes overflow", file(`{"a":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}}`), "more bytes than can be addressed"},
	{"overflow beside a 0", file(`{"a":{"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}}`), "more bytes than can be addressed"},
	{"too many axes", file(`{"a":{"dtype":"F32","shape":[1`+strings.Repeat(",1", 64)+`],"data_offsets":[0,4]}}`, 0, 0, 0, 0), "shape: expected at most 64 numbers"},

	{"one offset", file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0]}}`), "data_offsets: expected [begin, end], got 1 numbers"},
	{"three offsets", file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0,0]}}`), "data_offsets: expected at most 2 numbers"},
	{"negative offset", file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}}`), `data_offsets: expected integers from 0 to 9223372036854775807, got "-4"`},
	{"end before begin", file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}`, 0, 0, 0, 0), "which ends before it begins"},
	{"too few bytes for the shape", file(`{"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,20]}}`, make([]byte, 20)...), "expected 24 bytes for shape [2 3] of F32, got 20"},
	{"too many bytes for the shape", file(`{"a":{"dtype":"F32","shape":[],"data_offsets":[0,8]}}`, make([]byte, 8)...), "expected 4 bytes for shape [] of F32, got 8"},
	{"hole at the start", file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, make([]byte, 8)...), "leave a hole: expected them to begin at 0"},
	{"hole between", file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[5,9]}}`, make([]byte, 9)...), `tensor "b": data_offsets [5, 9] leave a hole: expected them to begin at 4`},
	{"overlap", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, make([]byte, 12)...), `overlap those of tensor "a", which end at 8`},
	{"the same bytes twice", file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, make([]byte, 4)...), "overlap"},
	{"empty tensor within another", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}}`, make([]byte, 8)...), "overlap"},

	{"values cut short", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, make([]byte, 7)...), "expected 8 bytes of values to follow, got 7: the file is cut short"},
	{"trailing byte", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, make([]byte, 9)...), "got 9: there are trailing bytes"},
	{"bytes and no tensor", file(`{}`, 1), "expected 0 bytes of values to follow, got 1: there are trailing bytes"},
	{"a claim of 4 EiB", file(`{"a":{"dtype":"F32","shape":[1152921504606846976],"data_offsets":[0,4611686018427387904]}}`, 0), "expected 4611686018427387904 bytes of values to follow, got 1"},
	{"a very long name", file(`{"` + strings.Repeat("a", 1_000_000) + `":1}`), `…: the entry`},
}

func TestReadRefusesHostileFiles(t *testing.T) {
	for _, test := range hostile {
		t.Run(test.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err := read(test.file)
			runtime.ReadMemStats(&after)
			want := test.want
			if strconv.IntSize < 64 { // 32-bit systems refuse large sizes earlier
				want = ""
			}
			refused(t, err, want)
			if len(err.Error()) > 400 {
				t.Errorf("the error has %d bytes, want at most 400", len(err.Error()))
			}
			if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+20*len(test.file)); got > limit {
				t.Errorf("%d bytes were allocated for a file of %d bytes, want at most %d", got, len(test.file), limit)
			}
		})
	}
}

func TestReadRefusesEveryTruncation(t *testing.T) {
	whole := write(t, []Tensor{{"a", []int{2}, []float32{1, 2}}, {"b", nil, []int64{3}}}, map[string]string{"k": "v"})
	for n := range whole {
		if _, _, err := read(whole[:n]); !errors.Is(err, ErrFormat) {
			t.Errorf("%d of %d bytes: got error %v, want %v", n, len(whole), err, ErrFormat)
		}
		// The file may also shrink while it is read.
		if _, _, err := Read(bytes.NewReader(whole[:n]), int64(len(whole))); !errors.Is(err, ErrFormat) {
			t.Errorf("%d bytes with a stated size of %d: got error %v, want %v", n, len(whole), err, ErrFormat)
		}
	}
}

// TestReadAcceptsOtherWriters reads files that follow the format but differ from what Write writes.
func TestReadAcceptsOtherWriters(t *testing.T) {
	tests := []struct {
		name     string
		file     []byte
		tensors  []Tensor
		metadata map[string]string
	}{
		{"nothing", file(`{}`), nil, nil},
		{"metadata alone", file(`{"__metadata__":{"k":"v"}}`), nil, map[string]string{"k": "v"}},
		{"no padding, white space, other orders",
			file("{ \"b\" : {\"data_offsets\":[4,8],\n\"shape\":[1],\"dtype\":\"F32\"},\"a\":{\"shape\":[],\"dtype\":\"F32\",\"data_offsets\":[0,4]},\"__metadata__\":{}}  \n",
				0, 0, 0x80, 0x3f, 0, 0, 0, 0x40),
			[]Tensor{{"a", nil, []float32{1}}, {"b", []int{1}, []float32{2}}}, nil},
		{"half precision",
			file(`{"b":{"dtype":"BF16","shape":[1],"data_offsets":[4,6]},"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}`, 0, 0x3c, 0, 0xc0, 0xc0, 0x3f),
			[]Tensor{{"h", []int{2}, []float32{1, -2}}, {"b", []int{1}, []float32{1.5}}}, nil},
		{"empty tensors anywhere",
			file(`{"c":{"dtype":"F32","shape":[0],"data_offsets":[4,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"I64","shape":[2,0],"data_offsets":[0,0]}}`, 0, 0, 0, 0),
			[]Tensor{{"a", []int{1}, []float32{0}}, {"b", []int{2, 0}, []int64{}}, {"c", []int{0}, []float32{}}}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tensors, metadata, err := read(test.file)
			if err != nil || !same(tensors, test.tensors) || !maps.Equal(metadata, test.metadata) {
				t.Errorf("got %v, %v, %v, want %v, %v", tensors, metadata, err, test.tensors, test.metadata)
			}
		})
	}
}

// TestHalfPrecision compares every binary16 and every bfloat16 with the definition of its value.
func TestHalfPrecision(t *testing.T) {
	value := func(h uint16, exponentBits, fractionBits int) float64 {
		bias := 1<<(exponentBits-1) - 1
		exponent, fraction := int(h)>>fractionBits&(1<<exponentBits-1), int(h)&(1<<fractionBits-1)
		v := 0.0
		switch {
		case exponent == 1<<exponentBits-1 && fraction == 0:
			v = math.Inf(1)
		case exponent == 1<<exponentBits-1:
			return math.NaN()
		case exponent == 0:
			v = math.Ldexp(float64(fraction), 1-bias-fractionBits)
		default:
			v = math.Ldexp(float64(fraction+1<<fractionBits), exponent-bias-fractionBits)
		}
		if h>>15 == 1 {
			v = -v
			if v == 0 {
				v = math.Copysign(0, -1)
			}
		}
		return v
	}
	for i := range 1 << 16 {
		h := uint16(i)
		for name, pair := range map[string][2]float64{
			"F16":  {float64(halfToFloat(h)), value(h, 5, 10)},
			"BF16": {float64(brainToFloat(h)), value(h, 8, 7)},
		} {
			got, want := pair[0], pair[1]
			if math.Float64bits(got) != math.Float64bits(want) && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Fatalf("%s %#04x: got %v, want %v", name, h, got, want)
			}
		}
	}
}

// FuzzRead checks that Read never panics, and that the tensors that it returns can be written and read again unchanged.
func FuzzRead(f *testing.F) {
	for _, test := range hostile {
		if len(test.file) < 1000 {
			f.Add(test.file)
		}
	}
	f.Add(file(`{}`))
	f.Add(file(`{"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"BF16","shape":[],"data_offsets":[4,6]}}`, 1, 2, 3, 4, 5, 6))
	f.Add(file(`{"m":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]},"x":{"dtype":"X","shape":[9],"data_offsets":[2,3]},"w":{"dtype":"F16","shape":[1],"data_offsets":[3,5]}}`, 1, 0, 7, 8, 9))
	f.Add(file(`{"__metadata__":{"\ud800":"\u0000"},"i":{"dtype":"I64","shape":[1,1],"data_offsets":[0,8]},"e":{"dtype":"F64","shape":[0],"data_offsets":[8,8]}}`, 1, 2, 3, 4, 5, 6, 7, 8))
	f.Fuzz(func(t *testing.T, b []byte) {
		tensors, metadata, err := read(b)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("got error %v, want %v", err, ErrFormat)
			}
			if f, err := NewFile(bytes.NewReader(b), int64(len(b))); err == nil {
				f.Tensors(func(name string) bool { // beside tensors of other dtypes
					return slices.ContainsFunc(f.Entries, func(e Entry) bool { return e.Name == name && e.Float() })
				})
			}
			return
		}
		again := write(t, tensors, metadata)
		tensors2, metadata2, err := read(again)
		if err != nil {
			t.Fatalf("reading the written file: %v", err)
		}
		if !same(tensors, tensors2) || !maps.Equal(metadata, metadata2) {
			t.Fatalf("got %v %v, then %v %v", tensors, metadata, tensors2, metadata2)
		}
	})
}
