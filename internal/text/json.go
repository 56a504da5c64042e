package text

import (
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON returns JSON in which every character that isn't printable is escaped, because terminals and pages may obey
// such characters.
func JSON(value any) ([]byte, error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	encoded := make([]byte, 0, len(plain))
	for len(plain) > 0 {
		r, size := utf8.DecodeRune(plain)
		switch {
		case unicode.IsPrint(r):
			encoded = append(encoded, plain[:size]...)
		case r < 1<<16:
			encoded = fmt.Appendf(encoded, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			encoded = fmt.Appendf(encoded, `\u%04x\u%04x`, high, low)
		}
		plain = plain[size:]
	}
	return encoded, nil
}
