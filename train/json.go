package train

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/heed-go/heed/internal/jsonkeys"
)

// number is a float64 that JSON can always store. If it isn't finite, it is the string "NaN", "+Inf" or "-Inf".
type number float64

func (x number) MarshalJSON() ([]byte, error) {
	if !finite(float64(x)) {
		return json.Marshal(strconv.FormatFloat(float64(x), 'g', -1, 64))
	}
	return json.Marshal(float64(x))
}

func (x *number) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil { // not a string
		return json.Unmarshal(b, (*float64)(x))
	}
	f, err := strconv.ParseFloat(s, 64)
	*x = number(f)
	return err
}

// plainState is an EarlyStopping without methods. In numericState, Best and Last replace the fields of the same names.
type (
	plainState   EarlyStopping
	numericState struct {
		plainState
		Best, Last number
	}
)

// MarshalJSON encodes a value that isn't finite as a string: "NaN", "+Inf" or "-Inf".
func (e EarlyStopping) MarshalJSON() ([]byte, error) {
	return json.Marshal(numericState{plainState(e), number(e.Best), number(e.Last)})
}

// stateKeys are the keys of an EarlyStopping in JSON.
var stateKeys = func() map[string]bool {
	keys := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[EarlyStopping]()) {
		if f.IsExported() && !f.Anonymous {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			keys[cmp.Or(name, f.Name)] = true
		}
	}
	return keys
}()

// UnmarshalJSON decodes the output of MarshalJSON. It returns an error if a key is unknown, repeated or in the wrong
// case.
func (e *EarlyStopping) UnmarshalJSON(b []byte) error {
	if err := jsonkeys.Check(b, func(key string) bool { return stateKeys[key] }); err != nil {
		return err
	}
	var n numericState
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	*e = EarlyStopping(n.plainState)
	e.Best, e.Last = float64(n.Best), float64(n.Last)
	return nil
}
