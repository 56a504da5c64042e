package choices

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Readable rewrites an error of decoding JSON so that it doesn't name Go's types. Embedded structs named Config or
// plain aren't part of a path in JSON.
func Readable(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	want := "an object"
	switch kind := wrong.Type.Kind(); {
	case kind == reflect.String || reflect.PointerTo(wrong.Type).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		want = "a string"
	case kind == reflect.Int:
		want = fmt.Sprintf("a whole number of at most %d bits", strconv.IntSize)
	case kind == reflect.Uint64:
		want = "a whole number of at most 64 bits, not negative"
	case kind == reflect.Float64:
		want = "a number that fits in 64 bits"
	case kind == reflect.Bool:
		want = "true or false"
	case kind == reflect.Slice:
		want = "an array"
	}
	path := cmp.Or(strings.NewReplacer("Config.", "", "plain.", "").Replace(wrong.Field), "it")
	text := fmt.Sprintf("%s must be %s, got %s", path, want, wrong.Value)
	return errors.New(strings.Replace(err.Error(), wrong.Error(), text, 1))
}
