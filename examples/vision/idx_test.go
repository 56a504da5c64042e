package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// idx returns the content of an IDX file.
func idx(data []byte, shape ...int) []byte {
	file := []byte{0, 0, 8, byte(len(shape))}
	for _, n := range shape {
		file = binary.BigEndian.AppendUint32(file, uint32(n)) // -1<<31 stands for 1<<31, because an int may have 32 bits
	}
	return append(file, data...)
}

func TestReadIDX(t *testing.T) {
	for _, c := range []struct {
		name  string
		file  []byte
		shape []int  // shape of the array, whose bytes are abcdef
		wrong string // part of the error; empty if the file is valid
	}{
		{"labels", idx([]byte("abcdef"), 6), []int{6}, ""},
		{"images", idx([]byte("abcdef"), 1, 2, 3), []int{1, 2, 3}, ""},
		{"nothing", nil, nil, "no IDX header"},
		{"half a header", []byte{0, 0, 8}, nil, "no IDX header"},
		{"text", []byte("label,pixel1\n"), nil, "must begin with 0, 0, 8"},
		{"integers of four bytes", []byte{0, 0, 12, 1, 0, 0, 0, 1, 0, 0, 0, 1}, nil, "must begin with 0, 0, 8"},
		{"no axis", idx([]byte("abcdef")), nil, "from 1 to 3"},
		{"four axes", idx([]byte("abcdef"), 1, 1, 2, 3), nil, "from 1 to 3"},
		{"an axis cut short", idx(nil, 2, 3)[:10], nil, "cut short"},
		{"an axis missing", idx(nil, 2, 3)[:8], nil, "cut short"},
		{"an axis of length 0", idx(nil, 2, 0), nil, "above 0"},
		{"far too large", idx(nil, -1<<31), nil, "at most 268435456"},
		{"a product that overflows", idx(nil, 1<<16, 1<<16, -1<<31), nil, "at most 268435456"},
		{"the largest header, with too few bytes", idx([]byte("abcdef"), 1<<28), nil, "ends after 6"},
		{"too few bytes", idx([]byte("abcde"), 2, 3), nil, "6 bytes of shape [2 3], but ends after 5"},
		{"too many", idx([]byte("abcdefg"), 2, 3), nil, "more than the 6 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			shape, data, err := readIDX(bytes.NewReader(c.file))
			switch {
			case c.wrong == "" && (err != nil || !slices.Equal(shape, c.shape) || string(data) != "abcdef"):
				t.Errorf("got shape %v, data %q and error %v, want shape %v and data abcdef", shape, data, err, c.shape)
			case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong) || data != nil):
				t.Errorf("got %q and %v, want an error with %q", data, err, c.wrong)
			}
		})
	}
}

// FuzzReadIDX checks that readIDX accepts only files that idx could have written.
func FuzzReadIDX(f *testing.F) {
	f.Add(idx([]byte("abcdef"), 6))
	f.Add(idx([]byte("abcdef"), 1, 2, 3))
	f.Add(idx(nil, 1<<16, 1<<16, -1<<31))
	f.Fuzz(func(t *testing.T, file []byte) {
		shape, data, err := readIDX(bytes.NewReader(file))
		if err == nil && !bytes.Equal(idx(data, shape...), file) {
			t.Errorf("readIDX accepts %v as %v with shape %v, want an error or the same file from idx", file, data, shape)
		}
	})
}

// write writes a gzip-compressed file.
func write(t *testing.T, folder, name string, file []byte) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	must.Get(z.Write(file))(t)
	must.Do(t, z.Close())
	must.Do(t, os.WriteFile(filepath.Join(folder, name), b.Bytes(), 0o666))
}

func TestLoadErrors(t *testing.T) {
	const pixels, labels = "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"
	two := idx(make([]byte, 2*side*side), 2, side, side)
	for _, c := range []struct {
		name   string
		change func(folder string)
		wrong  string
	}{
		{"not compressed", func(folder string) { os.WriteFile(filepath.Join(folder, pixels), two, 0o666) }, pixels + ": gzip: invalid header"},
		{"cut short", func(folder string) {
			file, _ := os.ReadFile(filepath.Join(folder, pixels))
			os.WriteFile(filepath.Join(folder, pixels), file[:len(file)-9], 0o666)
		}, pixels + ": can't read its bytes: unexpected EOF"},
		{"a bit flipped", func(folder string) {
			file, _ := os.ReadFile(filepath.Join(folder, labels))
			file[len(file)-6] ^= 1 // in the checksum
			os.WriteFile(filepath.Join(folder, labels), file, 0o666)
		}, labels + ": can't read its bytes: gzip: invalid checksum"},
		{"other sides", func(folder string) { write(t, folder, pixels, idx(make([]byte, 2*27*29), 2, 27, 29)) }, "got [2 27 29] and [2]"},
		{"labels in place of images", func(folder string) { write(t, folder, pixels, idx([]byte{0, 9}, 2)) }, "got [2] and [2]"},
		{"a label missing", func(folder string) { write(t, folder, labels, idx([]byte{0}, 1)) }, "got [2 28 28] and [1]"},
		{"a label out of range", func(folder string) { write(t, folder, labels, idx([]byte{0, 10}, 2)) }, "below 10, got 10 for image 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder, pixels, two)
			write(t, folder, labels, idx([]byte{0, 9}, 2))
			if s, err := load(folder, "train"); err != nil || len(s.labels) != 2 {
				t.Fatalf("the valid folder: labels %v, error %v", s.labels, err)
			}
			c.change(folder)
			if _, err := load(folder, "train"); err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("got %v, want an error with %q", err, c.wrong)
			}
		})
	}
	if _, err := load(t.TempDir(), "train"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: got %v, want an error for the missing file", err)
	}
}
