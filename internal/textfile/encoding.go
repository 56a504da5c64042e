package textfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/transform"

	"github.com/heed-go/heed/internal/text"
)

// An Encoding represents characters as bytes. The zero Encoding is UTF-8.
type Encoding struct {
	coding encoding.Encoding // nil for UTF-8
	name   string
	lost   []byte // U+FFFD; nil if the encoding lacks it
}

// Named returns the encoding with a name of the WHATWG Encoding Standard, such as windows-1252. Upper and lower case
// make no difference. The empty name stands for UTF-8.
func Named(name string) (Encoding, error) {
	if name == "" {
		return Encoding{}, nil
	}
	coding, err := htmlindex.Get(name)
	if err == nil {
		name, err = htmlindex.Name(coding)
	}
	if err != nil || coding == encoding.Replacement {
		examples := []string{"windows-1252", "latin1", "shift_jis", "gb18030", "koi8-r", "utf-16le", "utf-8"}
		return Encoding{}, fmt.Errorf("encoding %q is unknown: the names are listed at https://encoding.spec.whatwg.org/#names-and-labels, such as %s%s", name, strings.Join(examples, ", "), text.DidYouMean(name, examples))
	}
	e := Encoding{coding: coding, name: name}
	if e.name == "utf-8" {
		return Encoding{}, nil
	}
	if lost, err := coding.NewEncoder().String(replacement); err == nil {
		if back, err := coding.NewDecoder().String(lost); err == nil && back == replacement {
			e.lost = []byte(lost)
		}
	}
	return e, nil
}

// replacement is U+FFFD, which decoders return in place of bytes that aren't part of a character.
const replacement = "\uFFFD"

// UTF8 reports whether the encoding is UTF-8.
func (e Encoding) UTF8() bool { return e.coding == nil }

// String returns the encoding's name.
func (e Encoding) String() string {
	if e.UTF8() {
		return "UTF-8"
	}
	return e.name
}

// Append converts UTF-8 text to the encoding and appends it to out. Bytes that aren't UTF-8 stay in UTF-8. Other
// encodings can't have them: they become U+FFFD, or a question mark if the encoding lacks it. Append returns an error
// if the encoding lacks another character.
func (e Encoding) Append(out, text []byte) ([]byte, error) {
	if e.UTF8() {
		return append(out, text...), nil
	}
	valid := "?"
	if e.lost != nil {
		valid = replacement
	}
	text = bytes.ToValidUTF8(text, []byte(valid))
	coded, err := e.coding.NewEncoder().Bytes(text)
	if err == nil {
		return append(out, coded...), nil
	}
	for _, r := range string(text) {
		if _, err := e.coding.NewEncoder().String(string(r)); err != nil {
			return nil, fmt.Errorf("%s has no character %q: convert the file to UTF-8 first", e, r)
		}
	}
	return nil, err
}

// Advice says what to do about a file that isn't text in its encoding.
const Advice = "save the file as UTF-8, or give its encoding, such as windows-1252 or utf-16le"

// ErrNUL is the error for a NUL character.
var ErrNUL = errors.New("it has NUL bytes, so it isn't text, or it is UTF-16 without a byte-order mark: " + Advice)

// CheckUTF8 returns an error if the text of a file isn't UTF-8.
func CheckUTF8(s string) error {
	for offset, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[offset:], replacement) {
			return notText(Encoding{}, int64(offset))
		}
	}
	return nil
}

func notText(e Encoding, offset int64) error {
	return fmt.Errorf("not %s: the byte at offset %d (from 0) is no part of a character: %s", e, offset, Advice)
}

// NotText returns an error for a byte that isn't part of a character. If the File is UTF-8, this is the byte at the
// given offset, which counts the byte-order mark. Otherwise it is the first such byte, and offset is ignored.
func (f *File) NotText(offset int64) error {
	if !f.Encoding.UTF8() {
		offset = f.decoder.bad
	}
	return notText(f.Encoding, offset)
}

// A decoder converts text to UTF-8. It replaces a byte that isn't part of a character by 0xff, which isn't UTF-8.
type decoder struct {
	transform.Transformer
	lost   []byte
	offset int64 // number of bytes decoded so far
	bad    int64 // offset of the first replaced byte, or -1
}

// Transform decodes a few characters per step. A step that returns U+FFFD returns no other character, because it has
// room for three bytes of UTF-8. So the bytes that the step has read show whether the text itself has U+FFFD.
func (d *decoder) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		out := dst[nDst:]
		if len(out) < utf8.UTFMax {
			return nDst, nSrc, transform.ErrShortDst
		}
		n, m, err := d.Transformer.Transform(out[:len(replacement)], src[nSrc:], atEOF)
		if err == transform.ErrShortDst && m == 0 {
			n, m, err = d.Transformer.Transform(out[:utf8.UTFMax], src[nSrc:], atEOF)
		}
		if string(out[:n]) == replacement && (d.lost == nil || !bytes.Equal(src[nSrc:][:m], d.lost)) {
			out[0], n = 0xff, 1
			if d.bad < 0 {
				d.bad = d.offset
			}
		}
		nDst, nSrc, d.offset = nDst+n, nSrc+m, d.offset+int64(m)
		if err != nil && err != transform.ErrShortDst || m == 0 {
			return nDst, nSrc, err
		}
	}
	return nDst, nSrc, nil
}
