package layers_test

import (
	"os"
	"strings"
	"testing"
)

// The README's embedding example is ExampleMultiHeadAttention, line by line.
func TestReadmeExample(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, body, found := strings.Cut(string(source), "func ExampleMultiHeadAttention() {\n")
	body, _, found2 := strings.Cut(body, "\t// Output:")
	if !found || !found2 {
		t.Fatal("example_test.go has no such example")
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for line := range strings.Lines(body) {
		want.WriteString(strings.TrimPrefix(line, "\t"))
	}
	if !strings.Contains(string(readme), "```go\n"+want.String()+"```\n") {
		t.Errorf("README.md must show the body of ExampleMultiHeadAttention:\n%s", want.String())
	}
}
