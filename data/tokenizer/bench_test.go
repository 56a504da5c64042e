package tokenizer

import (
	"flag"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
)

var textFile = flag.String("text", "../../../shared/data/tinyshakespeare.txt", "file of English text to encode in benchmarks")

// BenchmarkTokenize measures how fast the families' tokenizers encode a text, line by line and as a whole. The script
// testdata/speed.py times the reference library beside it.
func BenchmarkTokenize(b *testing.B) {
	content, err := os.ReadFile(*textFile)
	if err != nil {
		b.Skip(err)
	}
	for _, f := range families(b) {
		for name, texts := range map[string][]string{"lines": strings.SplitAfter(string(content), "\n"), "whole": {string(content)}} {
			b.Run(f.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(content)))
				b.ReportAllocs()
				for b.Loop() {
					for _, text := range texts {
						must.Get(f.Tokenize(text, Options{}))(b)
					}
				}
			})
		}
	}
}

var long = flag.Int("long", 1<<15, "size in bytes of the texts of TestLongWords")

// TestLongWords encodes long texts without a space. It fails if a text takes too many steps per byte. To find work that
// isn't counted as steps, look at the times for texts of 1 MB: go test -v -run LongWords -long 1000000.
func TestLongWords(t *testing.T) {
	testseed.Proof(t)
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(alphabet string) string {
		var s strings.Builder
		for characters := []rune(alphabet); s.Len() < *long; {
			s.WriteRune(characters[rng.IntN(len(characters))])
		}
		return s.String()
	}
	texts := map[string]string{
		"one letter": random("a"), "letters": random("etaoinshr"), "capitals": random("EeTA"), "digits": random("0123456789"), "punctuation": random("'.!-("),
		"spaces": random(" "), "lines": random("\n "), "letters of other scripts": random("東京大阪한국어é"), "marks": "a" + random("\u0301\u0323\u05b0"), "unknown": random("☃☄👩\u200d"),
		"special tokens": strings.Repeat("<mask>", *long/6),
	}
	for _, f := range families(t) {
		for name, text := range texts {
			start := time.Now()
			tokens := must.Get(f.Tokenize(text, Options{Special: true}))(t)
			if testing.Verbose() {
				t.Logf("%s, %s: %d tokens, %v", f.name, name, len(tokens), time.Since(start))
			}
		}
	}
}
