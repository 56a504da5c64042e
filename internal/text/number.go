package text

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// MaxNumber is the largest size of a Number: its square, and the sum of many squares, are finite.
const MaxNumber = 1e100

// Number returns the number in a text: decimal digits with an optional sign, point and exponent, such as -1.5e3. Spaces
// around it don't count. It returns an error for other texts, for NaN and infinity, and for numbers beyond MaxNumber.
func Number(s string) (float64, error) {
	s = strings.TrimSpace(s)
	x, err := strconv.ParseFloat(s, 64)
	switch {
	case strings.Trim(s, "0123456789+-.eE") != "" || err != nil && x == 0:
		return 0, fmt.Errorf("%.60q isn't a number such as -12.5 or 3e6", s)
	case !(x >= -MaxNumber && x <= MaxNumber):
		return 0, fmt.Errorf("%.60q is beyond ±%g", s, MaxNumber)
	}
	return x, nil
}

// commaNumber matches a number with a decimal comma, or a whole number, with or without points between thousands.
var commaNumber = regexp.MustCompile(`^[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?$`)

// CommaNumber returns a number with a decimal comma, such as 1.234,5, as Number reads it: 1234.5. It reports whether s
// is such a number. A whole number is one too.
func CommaNumber(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if !commaNumber.MatchString(s) {
		return "", false
	}
	return strings.NewReplacer(".", "", ",", ".").Replace(s), true
}
