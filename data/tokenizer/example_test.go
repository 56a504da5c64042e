package tokenizer_test

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"slices"

	"github.com/heed-go/heed/data/tokenizer"
)

// Byte-pair encoding gives common sequences of bytes an id each.
func ExampleNew() {
	texts := []string{"the cat and the dog and the other cat"}
	tok, err := tokenizer.New(tokenizer.BPE, slices.Values(texts), 263) // 256 bytes and 7 merges
	if err != nil {
		log.Fatal(err)
	}
	ids, err := tok.Encode("the other cat naps")
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range ids {
		unit, err := tok.Decode([]int{id})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%q ", unit)
	}
	// Output:
	// "the" " " "o" "the" "r" " " "cat" " " "n" "a" "p" "s"
}

// A tokenizer is saved beside its model, as a tokenizer.json.
func ExampleWrite() {
	tok, err := tokenizer.New(tokenizer.Characters, slices.Values([]string{"heed"}), 0)
	if err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	if err := tokenizer.Write(&file, tok); err != nil {
		log.Fatal(err)
	}
	again, err := tokenizer.Read(&file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(again.Encode("need"))
	// Output:
	// [3 1 1 0] <nil>
}

func ExampleVocab() {
	vocab, err := tokenizer.NewVocab("deh")
	if err != nil {
		log.Fatal(err)
	}
	ids, err := vocab.Encode("heed")
	fmt.Println(ids, err)
	_, err = vocab.Encode("need")
	var unknown *tokenizer.UnknownSymbolError
	if errors.As(err, &unknown) {
		fmt.Printf("%q at %d\n", unknown.Symbol, unknown.Position)
	}
	// Output:
	// [2 1 1 0] <nil>
	// 'n' at 0
}

// Tokenize returns the part of the text that each id comes from.
func ExampleTokenizer() {
	tok, err := tokenizer.New(tokenizer.Tokens, slices.Values([]string{"to be or not to be"}), 0)
	if err != nil {
		log.Fatal(err)
	}
	text := "be,  or not"
	tokens, err := tok.Tokenize(text, tokenizer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range tokens {
		fmt.Printf("%d [%d:%d] %q known %t\n", t.ID, t.Start, t.End, text[t.Start:t.End], t.ID != tok.Unknown())
	}
	// Output:
	// 4 [0:3] "be," known false
	// 3 [5:7] "or" known true
	// 2 [8:11] "not" known true
}

// A Decoder turns ids into whole characters one at a time, as a model writes them.
func ExampleDecoder() {
	tok, err := tokenizer.New(tokenizer.BPE, slices.Values([]string{"to be, to be"}), 260)
	if err != nil {
		log.Fatal(err)
	}
	ids, err := tok.Encode("to 世")
	if err != nil {
		log.Fatal(err)
	}
	d := tokenizer.Decoder{Tokenizer: tok}
	for _, id := range ids {
		text, err := d.Next(id)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%q ", text)
	}
	fmt.Printf("%q\n", d.Flush())
	// Output:
	// "to" " " "" "" "世" ""
}
