package train

import (
	"encoding/json"
	"math"
	"strconv"
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

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
