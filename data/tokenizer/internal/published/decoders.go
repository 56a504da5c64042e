package published

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/data/tokenizer/internal/models"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
)

// parseDecoder makes the decoder of a tokenizer.json. It returns nil if there is none.
func parseDecoder(part json.RawMessage) (decoder, error) {
	typ, err := format.TypeOf(part)
	if typ == "" || err != nil {
		return nil, err
	}
	var file struct {
		Type     string            `json:"type"`
		Decoders []json.RawMessage `json:"decoders"`
		Prefix   string            `json:"prefix"`
		Cleanup  bool              `json:"cleanup"`
		Suffix   string            `json:"suffix"`
		Pattern  json.RawMessage   `json:"pattern"`
		Content  string            `json:"content"`
		Start    int               `json:"start"`
		Stop     int               `json:"stop"`
		Trim     json.RawMessage   `json:"trim_offsets"` // ByteLevel has this and the next; they don't change the text
		Regex    json.RawMessage   `json:"use_regex"`
		metaspaceJSON
	}
	if err := format.Decode(part, &file); err != nil {
		return nil, err
	}
	switch typ {
	case "ByteLevel":
		return eachToken(func(_ int, token string) string {
			if bytes, ok := models.Unspell(token); ok {
				return bytes
			}
			return token
		}), nil
	case "WordPiece":
		return eachToken(func(i int, token string) string {
			if i > 0 {
				rest, ok := strings.CutPrefix(token, file.Prefix)
				if token = rest; !ok {
					token = " " + token
				}
			}
			if file.Cleanup {
				token = cleanUp(token)
			}
			return token
		}), nil
	case "BPEDecoder":
		return endOfWord(file.Suffix), nil
	case "ByteFallback":
		return byteFallback{}, nil
	case "Fuse":
		return fuse{}, nil
	case "Strip":
		if utf8.RuneCountInString(file.Content) != 1 {
			return nil, fmt.Errorf("its content must be one character, got %.100q", file.Content)
		}
		return stripped{file.Content, file.Start, file.Stop}, nil
	case "Replace":
		find, _, err := parsePattern(file.Pattern)
		return replace{find, file.Content}, err
	case "Metaspace":
		m, err := file.metaspaceJSON.parse()
		return eachToken(func(i int, token string) string {
			space := " "
			if i == 0 && m.prepend != "never" {
				space = ""
			}
			return strings.ReplaceAll(token, m.replacement, space)
		}), err
	case "Sequence":
		list, err := format.Sequence(file.Decoders, parseDecoder)
		return decoders(list), err
	}
	return nil, format.Unsupported(typ)
}

// decoders is a sequence of decoders. Each decodes the tokens of the one before.
type decoders []decoder

func (list decoders) Stream(b *pipe.Budget, next pipe.Sink) (pipe.Sink, func()) {
	ends := make([]func(), len(list))
	for i, d := range slices.Backward(list) {
		next, ends[i] = d.Stream(b, bounded(b, next))
	}
	return next, func() {
		for _, end := range ends {
			end()
		}
	}
}

// bounded returns a sink that passes parts on to next until their sum is too large for the budget.
func bounded(b *pipe.Budget, next pipe.Sink) pipe.Sink {
	size := 0
	return func(part string, first, last bool) {
		size += len(part)
		if b.Take(pipe.StepsOfPart * (2 + len(part))); b.Fits(size) && !b.Spent() {
			next(part, first, last)
		}
	}
}

// whole returns a sink that joins the parts of each token, and calls f with the token.
func whole(f func(token string)) pipe.Sink {
	var held strings.Builder
	return func(part string, first, last bool) {
		if first && last {
			f(part)
			return
		}
		if held.WriteString(part); last {
			f(held.String())
			held.Reset()
		}
	}
}

// eachToken is a decoder that replaces each token by the result of a function. The argument i is the index of the
// token.
type eachToken func(i int, token string) string

func (f eachToken) Stream(_ *pipe.Budget, next pipe.Sink) (pipe.Sink, func()) {
	i := 0
	return whole(func(token string) {
		next(f(i, token), true, true)
		i++
	}), func() {}
}

// Stream replaces the matches of the pattern in each token.
func (p replace) Stream(b *pipe.Budget, next pipe.Sink) (pipe.Sink, func()) {
	return whole(func(token string) {
		next(p.Normalize(pipe.Text{Content: token, Budget: b}).Content, true, true)
	}), func() {}
}

// stripped removes a character from the start and the end of each token, up to start and stop times.
type stripped struct {
	content     string
	start, stop int
}

func (s stripped) Stream(b *pipe.Budget, next pipe.Sink) (pipe.Sink, func()) {
	if s.stop > 0 || s.content[0] >= utf8.RuneSelf { // whole tokens are needed, because a part may end inside a character
		return eachToken(func(_ int, token string) string {
			token, _ = s.cut(token, s.start)
			for n := 0; n < s.stop && strings.HasSuffix(token, s.content); n++ {
				token = token[:len(token)-len(s.content)]
			}
			return token
		}).Stream(b, next)
	}
	left := 0
	return func(part string, first, last bool) {
		if first {
			left = s.start
		}
		part, left = s.cut(part, left)
		next(part, first, last)
	}, func() {}
}

// cut removes up to n characters at the start of a part. It returns the rest of the part, and how many characters the
// next part of the token may lose.
func (s stripped) cut(part string, n int) (string, int) {
	for n > 0 && strings.HasPrefix(part, s.content) {
		part, n = part[len(s.content):], n-1
	}
	if part != "" {
		n = 0
	}
	return part, n
}

// cleanUp removes the spaces that WordPiece's decoder puts before English punctuation and contractions.
func cleanUp(text string) string {
	for _, pair := range [...][2]string{
		{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"}, {" do not", " don't"},
		{" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
	} {
		text = strings.ReplaceAll(text, pair[0], pair[1])
	}
	return text
}

// endOfWord replaces the suffix that ends a word by a space. In the last token of the text, it removes the suffix.
type endOfWord string

func (suffix endOfWord) Stream(_ *pipe.Budget, next pipe.Sink) (pipe.Sink, func()) {
	held, started := "", false // held is the last token, if the text has started
	put := func(space string) {
		if started {
			next(strings.ReplaceAll(held, string(suffix), space), true, true)
		}
	}
	return whole(func(token string) {
		put(" ")
		held, started = token, true
	}), func() { put("") }
}

// byteFallback turns neighbouring tokens such as <0xE2> into text. If their bytes aren't UTF-8, each becomes U+FFFD.
type byteFallback struct{}

func (byteFallback) Stream(_ *pipe.Budget, next pipe.Sink) (pipe.Sink, func()) {
	var held []byte
	flush := func() {
		switch {
		case len(held) == 0:
		case utf8.Valid(held):
			next(string(held), true, true)
		default:
			for range held {
				next(string(utf8.RuneError), true, true)
			}
		}
		held = held[:0]
	}
	return whole(func(token string) {
		if b, ok := models.ByteOf(token); ok {
			held = append(held, b)
			return
		}
		flush()
		next(token, true, true)
	}), flush
}

// fuse joins all tokens into one.
type fuse struct{}

func (fuse) Stream(_ *pipe.Budget, next pipe.Sink) (pipe.Sink, func()) {
	started := false
	return func(part string, _, _ bool) {
		next(part, !started, false)
		started = true
	}, func() { next("", !started, true) }
}
