package data

import (
	"slices"
	"testing"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
)

// TestPack numbers the documents of JSONL lines and of files, for characters and for tokens. A document's last symbol
// has no target.
func TestPack(t *testing.T) {
	within(t)
	dir := writeAll(t, map[string]string{"a.jsonl": `{"text": "é b"}` + "\n" + `{"text": ""}` + "\n" + `{"text": "cde"}`, "b.txt": "fg\nh", "c.txt": "\ufeff", "d.txt": "ij"})
	files := TextFiles{Paths: []string{dir}}
	text := must.Get(OpenText(files, nil))(t)
	defer text.Close()
	if n := text.Documents(); n != 6 {
		t.Errorf("the text has %d documents, want 3 lines and 3 files", n)
	}
	content := []rune(must.Get(text.Content())(t)) // é b⏎ ⏎ cde⏎ fg⏎h⏎ ij
	want := []int{0, 0, 0, 0, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 5, 5}
	check := func(text *Text, start, length int, numbers []int) {
		t.Helper()
		b := must.Get(text.newBatch(2, length))(t)
		must.Do(t, text.fill(&b, 1, start, make([]int, length+1)))
		got, targets := b.Documents[length:], b.Targets[length:]
		for i := range length {
			ends := numbers[start+i] != numbers[start+i+1]
			if i > 0 && (got[i] == got[i-1]) != (numbers[start+i] == numbers[start+i-1]) || (targets[i] == Ignore) != ends {
				t.Errorf("from symbol %d on: got the documents %d and the targets %d, want documents like %d", start, got, targets, numbers[start:][:length])
				break
			}
		}
		if !slices.IsSorted(got) {
			t.Errorf("the documents are %d, want rising numbers", got)
		}
	}
	if len(content) != len(want) {
		t.Fatalf("the text is %q", string(content))
	}
	text.Pack()
	for start := range 6 {
		check(text, start, 9, want)
	}
	b := must.Get(text.TrainBatch(1, 0, 0, 3, 4))(t)
	if part := b.Rows(1, 2); len(b.Documents) != 12 || !slices.Equal(part.Documents, b.Documents[4:8]) {
		t.Errorf("a batch has the documents %d, and its row 1 has %d", b.Documents, part.Documents)
	}

	tokens := must.Get(OpenText(files, nil))(t)
	defer tokens.Close()
	must.Do(t, tokens.LearnBPE(260))
	var owners []int // the document of each token: the one with its last byte, because a token may begin with white space
	bytes := []byte(string(content))
	at := 0
	byteDocuments := []int{0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 5, 5}
	for i := range tokens.Len() {
		id := make([]int, 1)
		must.Do(t, tokens.Window(id, i))
		at += len(must.Get(tokens.Tokenizer().Decode(id))(t))
		owners = append(owners, byteDocuments[at-1])
	}
	if at != len(bytes) {
		t.Fatalf("the tokens have %d bytes, want %d", at, len(bytes))
	}
	tokens.Pack()
	check(tokens, 0, tokens.Len()-1, owners)

	one := must.Get(OpenText(TextFiles{Paths: []string{dir + "/b.txt"}}, must.Get(tokenizer.NewVocab("fgh\n"))(t)))(t)
	defer one.Close()
	one.Pack()
	if n := one.Documents(); n != 1 {
		t.Errorf("a file of plain text has %d documents, want 1", n)
	}
	check(one, 0, 3, []int{0, 0, 0, 0})
}

func TestPositions(t *testing.T) {
	b := Batch{Len: 4, Documents: []int{0, 0, 1, 1, 1, 2, 2, 2}}
	if got, want := b.Positions(), []int{0, 1, 0, 1, 0, 0, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("got the positions %d, want %d", got, want)
	}
}
