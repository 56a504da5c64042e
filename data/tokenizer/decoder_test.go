package tokenizer

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heed-go/heed/internal/must"
)

func TestDecoder(t *testing.T) {
	toks := ofEach(t, "the the the été 世")
	e, world := "\xc3", "\xe4\xb8\x96"
	for _, tc := range []struct {
		name  string
		units Units
		texts []string // one for each id
		want  []string // results of Next for each id, and of Flush
	}{
		{"nothing", BPE, nil, []string{""}},
		{"characters", Characters, []string{"t", "é", "?", "世"}, []string{"t", "é", "�", "世", ""}},
		{"a space between words", Words, []string{"the", "été", "?"}, []string{"the", " été", " �", ""}},
		{"a space between tokens", Tokens, []string{"the", "été", "?"}, []string{"the", " été", " �", ""}},
		{"tokens of several characters", BPE, []string{"the", " the"}, []string{"the", " the", ""}},
		{"half characters", BPE, []string{"a", world[:1], world[1:2], world[2:], e}, []string{"a", "", "", "世", "", "�"}},
		{"several bytes at the end", BPE, []string{"\xf0", "\x9f", "\x98"}, []string{"", "", "", "�"}},
		{"two unfinished characters", BPE, []string{"\xf0", "\x9f", "\xe4", "\xb8"}, []string{"", "", "�", "", "�"}},
		{"a character cut by another", BPE, []string{world[:1], world[1:2], "a"}, []string{"", "", "�a", ""}},
		{"a character cut by half another", BPE, []string{world[:1], e, "\xa9"}, []string{"", "�", "é", ""}},
		{"bytes that begin no character", BPE, []string{"\x96", "\xff", "a"}, []string{"�", "�", "a", ""}},
		{"an overlong character", BPE, []string{"\xe0", "\x80", "\x80"}, []string{"", "��", "�", ""}},
	} {
		tok := toks[tc.units]
		d := Decoder{Tokenizer: tok}
		var ids []int
		for _, text := range tc.texts {
			ids = append(ids, idOf(t, tok, text))
		}
		for round := range 2 { // the second round checks that Flush resets the Decoder
			if got := oneByOne(t, &d, ids); !slices.Equal(got, tc.want) {
				t.Errorf("%s, %s, text %d: %q, want %q", tc.units, tc.name, round, got, tc.want)
			}
		}
		for _, id := range []int{-1, tok.Len()} {
			must.Refuse(d.Next(id))(t, "isn't one of the tokenizer's")
		}
	}
}

// oneByOne returns the results of Next for each id, which must be UTF-8, and of Flush.
func oneByOne(t *testing.T, d *Decoder, ids []int) (texts []string) {
	t.Helper()
	for i, id := range ids {
		text := must.Get(d.Next(id))(t)
		if !utf8.ValidString(text) {
			t.Errorf("id %d of %v adds %q", i, ids, text)
		}
		texts = append(texts, text)
	}
	return append(texts, d.Flush())
}

// idOf returns the id whose text is text, or the unknown id.
func idOf(t *testing.T, tok Tokenizer, text string) int {
	t.Helper()
	for id := range tok.Len() {
		if got, err := tok.Decode([]int{id}); err == nil && got == text {
			return id
		}
	}
	if tok.Unknown() < 0 {
		t.Fatalf("no id for %q", text)
	}
	return tok.Unknown()
}

// marked is a Tokenizer with one more id, for a special token.
type marked struct{ Tokenizer }

func (m marked) Len() int                { return m.Tokenizer.Len() + 1 }
func (m marked) Special() map[string]int { return map[string]int{"<|end|>": m.Tokenizer.Len()} }

func (m marked) Decode(ids []int) (string, error) {
	if i := slices.Index(ids, m.Tokenizer.Len()); i >= 0 {
		before, err := m.Tokenizer.Decode(ids[:i])
		if err != nil {
			return "", err
		}
		after, err := m.Decode(ids[i+1:])
		return before + "<|end|>" + after, err
	}
	return m.Tokenizer.Decode(ids)
}

func TestDecoderSkipsSpecial(t *testing.T) {
	tok := marked{newTestBPE(t, 256, "é")}
	end := tok.Len() - 1
	ids, err := tok.Encode("é<|end|>")
	if err != nil || slices.Contains(ids, end) {
		t.Fatalf("%v, %v", ids, err)
	}
	ids = slices.Concat([]int{end, ids[0], end}, ids[1:2], []int{end}) // end is also between the bytes of é
	for skip, want := range map[bool]string{true: "é", false: "<|end|>�<|end|>�<|end|>"} {
		if got := strings.Join(oneByOne(t, &Decoder{Tokenizer: tok, SkipSpecial: skip}, ids), ""); got != want {
			t.Errorf("SkipSpecial %t: %q, want %q", skip, got, want)
		}
	}
}

// FuzzDecoder checks that a Decoder returns the same text as Decode, wherever the ids split characters.
func FuzzDecoder(f *testing.F) {
	f.Add("the cat, été 世界 😀😀", []byte{0, 1, 2, 3, 255, 200, 150, 190, 9})
	f.Add("世\ufffd", []byte("\xe4\xb8\x96\xf0\x9f"))
	f.Fuzz(func(t *testing.T, text string, choices []byte) {
		if len(text) > 200 || len(choices) > 100 || !utf8.ValidString(text) {
			return
		}
		for units, tok := range ofEach(t, "a "+text) {
			ids := make([]int, len(choices))
			for i, choice := range choices {
				ids[i] = int(choice) % tok.Len()
			}
			for n := range len(ids) + 1 {
				whole := must.Get(tok.Decode(ids[:n]))(t)
				if got := strings.Join(oneByOne(t, &Decoder{Tokenizer: tok}, ids[:n]), ""); got != valid(whole) {
					t.Fatalf("%s: %v: got %q one id at a time, %q at once", units, ids[:n], got, whole)
				}
			}
		}
	})
}

// TestDecoderPublished decodes the families' ids one at a time: Llama 2 strips a space of the whole text, WordPiece
// puts no space before the first token, and neighbouring bytes may or may not be a character.
func TestDecoderPublished(t *testing.T) {
	for _, f := range families(t) {
		stream := func(ids []int, skip bool) string {
			return strings.Join(oneByOne(t, &Decoder{Tokenizer: f.Pipeline, SkipSpecial: skip}, ids), "")
		}
		for _, c := range f.Texts {
			if got := stream(c.Special.IDs, false); got != c.Decoded {
				t.Errorf("%s: %v one at a time is %q, want %q", f.name, c.Special.IDs, got, c.Decoded)
			}
			if got := stream(c.Special.IDs, true); got != c.Skipped {
				t.Errorf("%s: %v one at a time without special tokens is %q, want %q", f.name, c.Special.IDs, got, c.Skipped)
			}
		}
		ids := must.Get(f.Encode("the cat and the dog"))(t)
		if got := oneByOne(t, &Decoder{Tokenizer: f.Pipeline}, ids); slices.Contains(got[1:len(ids)], "") {
			t.Errorf("%s: some of %q are held back", f.name, got)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 100 {
			ids := make([]int, rng.IntN(20))
			for i := range ids {
				ids[i] = rng.IntN(f.Len())
			}
			want := must.Get(f.Decode(ids))(t)
			if got := stream(ids, false); got != valid(want) {
				t.Errorf("%s: %v one at a time is %q, at once %q", f.name, ids, got, valid(want))
			}
		}
	}
}

// TestDecoderParts decodes with every sequence of three decoders, one id at a time and at once.
func TestDecoderParts(t *testing.T) {
	parts := []string{
		`{"type": "ByteFallback"}`, `{"type": "Fuse"}`, `{"type": "Strip", "content": " ", "start": 2, "stop": 0}`, `{"type": "Strip", "content": "é", "start": 1, "stop": 2}`, `{"type": "ByteLevel"}`,
		`{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}`, `{"type": "WordPiece", "prefix": "##", "cleanup": true}`, `{"type": "BPEDecoder", "suffix": "a"}`, `{"type": "Metaspace", "replacement": "▁"}`,
	}
	vocab := []string{"a", "##b", "▁", "▁a", "▁▁", "é", "éa", "<0xC3>", "<0xA9>", "<0x20>", "Ġ", "Ã", "©", " ", " ."}
	ids := map[string]int{}
	for id, token := range vocab {
		ids[token] = id
	}
	model := must.Get(json.Marshal(map[string]any{"type": "BPE", "vocab": ids, "merges": []string{}}))(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range len(parts) * len(parts) * len(parts) {
		names := []string{parts[i%len(parts)], parts[i/len(parts)%len(parts)], parts[i/len(parts)/len(parts)]}
		tok := must.Get(Read(strings.NewReader(`{"version": "1.0", "decoder": {"type": "Sequence", "decoders": [` + strings.Join(names, ",") + `]}, "model": ` + string(model) + `}`)))(t)
		for range 5 {
			ids := make([]int, rng.IntN(8))
			for i := range ids {
				ids[i] = rng.IntN(len(vocab))
			}
			want := must.Get(tok.Decode(ids))(t)
			if got := strings.Join(oneByOne(t, &Decoder{Tokenizer: tok}, ids), ""); got != valid(want) {
				t.Errorf("%v, %v: one at a time %q, at once %q", names, ids, got, valid(want))
			}
		}
	}
}
