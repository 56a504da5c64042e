package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
	folder, items := t.TempDir(), []uint32{1, 3}
	for name, file := range map[string][]byte{
		"nothing": nil, "half a header": {0, 0, 8}, "text": []byte("label,pixel1\n"), "no axis": idx([]byte("abcdef")),
		"labels": idx([]byte("abcdef"), 6), "four axes": idx([]byte("abcdef"), 2, 1, 1, 3), "other sides": idx([]byte("abcdef"), 2, 3, 1),
		"integers of four bytes": append([]byte{0, 0, 12, 3}, idx([]byte("abcdef"), 2, 1, 3)[4:]...),
		"an axis cut short":      idx(nil, 2, 1, 3)[:14], "an axis missing": idx(nil, 2, 1, 3)[:12], "no item": idx(nil, 0, 1, 3),
		"far too large": idx([]byte("abcdef"), -1<<31, 1, 3), "too few bytes": idx([]byte("abcde"), 2, 1, 3), "too many": idx([]byte("abcdefg"), 2, 1, 3),
	} {
		write(t, folder, name, file)
		must.Refuse(readIDX(filepath.Join(folder, name), items...))(t, "expected an IDX file of bytes with items of shape [1 3], got")
	}
	write(t, folder, "images", idx([]byte("abcdef"), 2, 1, 3))
	write(t, folder, "labels", idx([]byte("abcdef"), 6))
	images, labels := must.Get(readIDX(filepath.Join(folder, "images"), items...))(t), must.Get(readIDX(filepath.Join(folder, "labels")))(t)
	if string(images) != "abcdef" || string(labels) != "abcdef" {
		t.Errorf("got %q and %q, want abcdef", images, labels)
	}
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
		}, pixels + ": unexpected EOF"},
		{"a bit flipped", func(folder string) {
			file, _ := os.ReadFile(filepath.Join(folder, labels))
			file[len(file)-6] ^= 1 // in the checksum
			os.WriteFile(filepath.Join(folder, labels), file, 0o666)
		}, labels + ": gzip: invalid checksum"},
		{"labels in place of images", func(folder string) { write(t, folder, pixels, idx([]byte{0, 9}, 2)) }, "items of shape [28 28], got 10 bytes"},
		{"a label missing", func(folder string) { write(t, folder, labels, idx([]byte{0}, 1)) }, "2 images have 1 labels"},
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
			must.Refuse(load(folder, "train"))(t, c.wrong)
		})
	}
	if _, err := load(t.TempDir(), "train"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: got %v, want an error for the missing file", err)
	}
}
