package textfile

import (
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

func TestCheckJSONL(t *testing.T) {
	const lines, array = "its first JSON object has several lines", "it is a JSON array"
	for _, test := range []struct{ content, want string }{
		{"{\n  \"a\": 1\n}\n{\n  \"a\": 2\n}\n", lines},
		{"\n {\"a\": [\r\n1]}", lines},
		{"{\"rows\": [\n" + strings.Repeat("{\"a\": 1},\n", Buffer/9), lines}, // longer than what Peek returns
		{"[\n{\"a\": 1}\n]", array},
		{"\n [{\"a\": 1}]", array},
		{"{\"a\": 1}\n{\"a\":\n2}", ""},
		{"{\"a\": \"" + strings.Repeat("x", Buffer) + "\"}\n", ""},
		{"{\"a\": \"cut\n{\"a\": 1}\n", ""},
		{"{\"a\": 1,\n{\"a\": 1}\n", ""},
		{"{\"a\": 1},\n{\"a\": 1}\n", ""},
		{"{\"a\": ", ""},
		{"x\n{\n}\n", ""},
		{"\n\n", ""},
	} {
		f := must.Get(New(strings.NewReader(test.content), int64(len(test.content)), ""))(t)
		if err := f.CheckJSONL(); err == nil && test.want != "" || err != nil && (test.want == "" || !strings.HasPrefix(err.Error(), test.want)) {
			t.Errorf("%.40q: got error %v, want %q", test.content, err, test.want)
		}
	}
}
