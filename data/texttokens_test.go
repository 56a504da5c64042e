package data

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
)

func openBPE(t *testing.T, content string, size int) *Text {
	t.Helper()
	text := openFile(t, write(t, content), nil)
	must.Do(t, text.LearnBPE(size))
	return text
}

// Tokens are learned from the first nine tenths of the characters. No token crosses the end of this part. Encoding in
// parts gives the same tokens as encoding the whole part.
func TestLearnBPE(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, content string }{
		{"lines", strings.Repeat("the other weather, été 世界\r\n\n\t  of 12 others 's  ", 40)},
		{"several parts", strings.Repeat("the other weather \n\n  of others\u00a0 \u0085\n ", 3*partBytes/30)},
		{"no place to cut", strings.Repeat("été世界", partBytes/8)},
		{"a split inside a word", strings.Repeat("a", 9) + "a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if len(tc.content) > partBytes/2 {
				testseed.Proof(t)
			}
			text := openBPE(t, tc.content, 270)
			characters := []rune(tc.content)
			n := len(characters) * 9 / 10
			train, validation := string(characters[:n]), string(characters[n:])
			tok := must.Get(tokenizer.New(tokenizer.BPE, slices.Values([]string{train}), 270))(t)
			if got, want := tokenizerFile(t, text.Tokenizer()), tokenizerFile(t, tok); got != want || vocabOf(text) != nil {
				t.Fatalf("got tokenizer %s, want %s", got, want)
			}
			want, err := tok.Encode(train)
			if err != nil || text.trainLen() != len(want) {
				t.Fatalf("got %d tokens for training, want %d; error %v", text.trainLen(), len(want), err)
			}
			last, err := tok.Encode(validation)
			want = append(want, last...)
			ids := make([]int, text.Len())
			if err := errors.Join(err, text.Window(ids, 0)); err != nil || !slices.Equal(ids, want) {
				t.Fatalf("got %d ids, want %d, or the ids differ; error %v", len(ids), len(want), err)
			}
			again := openFile(t, write(t, tc.content), text.Tokenizer())
			if err := again.Window(ids, 0); err != nil || again.trainLen() != text.trainLen() || !slices.Equal(ids, want) {
				t.Errorf("opened with the learned tokenizer, the text has %d tokens for training, want %d and the same ids; error %v", again.trainLen(), text.trainLen(), err)
			}
		})
	}
}

// tokenizerFile returns the file that tokenizer.Write writes for tok.
func tokenizerFile(t testing.TB, tok tokenizer.Tokenizer) string {
	t.Helper()
	var file strings.Builder
	must.Do(t, tokenizer.Write(&file, tok))
	return file.String()
}

// Encoding two parts separately gives the same ids as encoding both together.
func TestTextPartEnds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	symbols := []string{" ", "\n", "\t", "\r", "\u0085", "\u00a0", "\u3000", "a", "é", "世", "'s", "'", "1", ",", "\ufffd"}
	tok := newTokenizer(t, tokenizer.BPE, 300, strings.Join(symbols, "")+strings.Repeat("  \n\n a a's 11 ,,", 9))
	ends := 0
	for range 2000 {
		var s strings.Builder
		for range rng.IntN(30) {
			s.WriteString(symbols[rng.IntN(len(symbols))])
		}
		text := s.String()
		end := partEnd([]byte(text), rng.IntN(len(text)+1))
		if end == 0 {
			continue
		}
		ends++
		tokens, err := tok.Encode(text)
		left, leftErr := tok.Encode(text[:end])
		right, rightErr := tok.Encode(text[end:])
		if err := errors.Join(err, leftErr, rightErr); err != nil || !slices.Equal(tokens, append(left, right...)) {
			t.Fatalf("%q, cut at %d: the parts have other ids than the whole, or error %v", text, end, err)
		}
	}
	if ends < 500 {
		t.Errorf("only %d texts were cut, want at least 500", ends)
	}
}

// Windows of tokens are within either the training part or the validation part.
func TestTextBPEBatches(t *testing.T) {
	content := strings.Repeat("train these words ", 90) + strings.Repeat("validate ", 20)
	text := openBPE(t, content, 280)
	tokens := make([]int, text.Len())
	must.Do(t, text.Window(tokens, 0))
	check := func(b Batch, from []int) {
		t.Helper()
		for row := range b.Size {
			input, out := b.Inputs[row*b.Len:][:b.Len], b.Targets[row*b.Len:][:b.Len]
			window := append(slices.Clone(input), out[b.Len-1])
			found := false
			for i := range len(from) - b.Len {
				found = found || slices.Equal(from[i:][:b.Len+1], window)
			}
			if !slices.Equal(input[1:], out[:b.Len-1]) || !found || b.Lengths[row] != b.Len {
				t.Errorf("row %d: got inputs %v and targets %v, want a window of the part", row, input, out)
			}
		}
	}
	b := must.Get(text.TrainBatch(1, 2, 3, 8, 5))(t)
	check(b, tokens[:text.trainLen()])
	n, err := text.ValidationWindows(5, 3)
	if err != nil || n != 3 {
		t.Fatalf("got %d windows, %v, want 3", n, err)
	}
	b = must.Get(text.ValidationBatch([]int{0, 1, 2}, 5, 3))(t)
	check(b, tokens[text.trainLen():])
	must.Fail(t, text.Window(make([]int, 2), text.Len()-1), "tokens: there is no window of length 2 at index")
	must.Refuse(text.ValidationWindows(5000, 0))(t, "tokens, too few for windows of length 5000")
}

func TestOpenTextWithTokens(t *testing.T) {
	content := strings.Repeat("the other ", 20)
	first := openBPE(t, content, 260)
	other := openFile(t, write(t, content+"世"), first.Tokenizer()) // the tokenizer encodes 世 by its bytes
	if other.Tokenizer() != first.Tokenizer() || other.Len() < first.Len()+3 {
		t.Errorf("got %d tokens, want the same tokenizer and at least 3 more than %d tokens", other.Len(), first.Len())
	}
	must.Fail(t, openFile(t, write(t, content), nil).LearnBPE(255), "a size of at least 256, got 255")
	must.Fail(t, openFile(t, write(t, "x"), nil).LearnBPE(256), "all of them are empty")
	path := write(t, content)
	text := openFile(t, path, nil)
	must.Do(t, os.Truncate(path, 50))
	if err := text.tokenize(nil, 260); !errors.Is(err, errChanged) {
		t.Errorf("a truncated file: got error %v, want errChanged", err)
	}
}

// A Coder for text can use tokens.
func TestTextOfTokens(t *testing.T) {
	tok := newTokenizer(t, tokenizer.BPE, 258, "the the the")
	c := must.Get(NewCoder(Rule{Name: "text", Kind: KindText, MaxLen: 4, Source: tok}))(t)
	if l := c.Layout(); l.Tokens != 258 || l.Classes != 258 {
		t.Errorf("got %+v, want 258 Tokens and Classes", l)
	}
	b, err := c.Batch([]Example{{Source: "the x", Answer: "the"}})
	if err != nil || b.Lengths[0] != 3 || b.Targets[2] != b.Inputs[0] {
		t.Errorf("%+v, %v", b, err)
	}
	must.Refuse(c.Batch([]Example{{Source: "the", Answer: "xy"}}))(t, "the one symbol that follows")
}

// A long text without white space is one part, and an error if there isn't enough memory to encode it.
func TestPartsMemory(t *testing.T) {
	for content, good := range map[string]bool{strings.Repeat("a", 3*partBytes): false, strings.Repeat("a ", 2*partBytes): true} {
		text := must.Get(newText("a text", textSource{ReaderAt: strings.NewReader(content), size: int64(len(content))}, nil))(t)
		err := text.parts(0, text.size, 2*partBytes*perByte, func(string) bool { return true })
		if good != (err == nil) || !good && !strings.HasPrefix(err.Error(), "3 MB without white space before byte 3145728 take ") {
			t.Errorf("%.3q…: error %v, want none only if there is white space", content, err)
		}
	}
}
