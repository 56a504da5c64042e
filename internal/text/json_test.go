package text

import (
	"encoding/json"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// Characters that a terminal or a page would obey are escaped. Decoding the JSON gives the same text again.
func TestJSON(t *testing.T) {
	const hostile = "a\x1b[31m\u009b31m\u202e</script>&\u2028\x7f\U000e0001é文😀\r\n\t\x00"
	encoded := must.Get(JSON(hostile))(t)
	if want := `"a\u001b[31m\u009b31m\u202e\u003c/script\u003e\u0026\u2028\u007f\udb40\udc01é文😀\r\n\t\u0000"`; string(encoded) != want {
		t.Errorf("got %s, want %s", encoded, want)
	}
	var back string
	if err := json.Unmarshal(encoded, &back); err != nil || back != hostile {
		t.Errorf("decoded again, got %q, %v, want %q", back, err, hostile)
	}
}
