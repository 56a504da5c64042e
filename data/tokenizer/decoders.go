package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// parseDecoder makes the decoder of a tokenizer.json; nil if there is none.
func parseDecoder(part json.RawMessage) (decoder, error) {
	typ, err := typeOf(part)
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
		Trim     json.RawMessage   `json:"trim_offsets"` // of ByteLevel, as the next: they change no text
		Regex    json.RawMessage   `json:"use_regex"`
		metaspaceJSON
	}
	if err := decode(part, &file); err != nil {
		return nil, err
	}
	switch typ {
	case "ByteLevel":
		return eachToken(func(_ int, token string) string {
			if bytes, ok := unspell(token); ok {
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
		return eachToken(func(_ int, token string) string {
			for n := 0; n < file.Start && strings.HasPrefix(token, file.Content); n++ {
				token = token[len(file.Content):]
			}
			for n := 0; n < file.Stop && strings.HasSuffix(token, file.Content); n++ {
				token = token[:len(token)-len(file.Content)]
			}
			return token
		}), nil
	case "Replace":
		find, _, err := parsePattern(file.Pattern)
		return eachToken(func(_ int, token string) string {
			return replace{find, file.Content}.normalize(aligned{text: token}).text
		}), err
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
		all, err := sequenceOf(file.Decoders, parseDecoder)
		return decoders(all), err
	}
	return nil, unsupported(typ)
}

// decoders are decoders in a sequence.
type decoders []decoder

func (all decoders) decode(tokens []string) []string {
	for _, d := range all {
		tokens = d.decode(tokens)
	}
	return tokens
}

// eachToken decodes each token by itself. Its argument i is the index of the token.
type eachToken func(i int, token string) string

func (f eachToken) decode(tokens []string) []string {
	out := make([]string, len(tokens))
	for i, token := range tokens {
		out[i] = f(i, token)
	}
	return out
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

// endOfWord replaces the suffix of a word's last token by a space, or by nothing in the last token of all.
type endOfWord string

func (suffix endOfWord) decode(tokens []string) []string {
	return eachToken(func(i int, token string) string {
		space := " "
		if i == len(tokens)-1 {
			space = ""
		}
		return strings.ReplaceAll(token, string(suffix), space)
	}).decode(tokens)
}

// byteFallback turns runs of tokens such as <0xE2> into text, with U+FFFD for each byte if they aren't UTF-8.
type byteFallback struct{}

func (byteFallback) decode(tokens []string) []string {
	var out []string
	var held []byte
	flush := func() {
		if utf8.Valid(held) {
			if len(held) > 0 {
				out = append(out, string(held))
			}
		} else {
			for range held {
				out = append(out, unknownToken)
			}
		}
		held = held[:0]
	}
	for _, token := range tokens {
		if b, ok := byteToken(token); ok {
			held = append(held, b)
			continue
		}
		flush()
		out = append(out, token)
	}
	flush()
	return out
}

// fuse makes one token of all.
type fuse struct{}

func (fuse) decode(tokens []string) []string { return []string{strings.Join(tokens, "")} }
