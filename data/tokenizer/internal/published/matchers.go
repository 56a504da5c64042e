package published

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/characters"
	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/data/tokenizer/internal/patterns"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
)

// A matcher splits a text before and after the matches of a pattern.
type matcher struct {
	find     func(text string) (start, end int) // returns the first match, or len(text) twice if there is none
	invert   bool                               // matches count as the text between matches, and the text between as matches
	behavior string                             // what happens to matches; one of behaviors
}

// behaviors are what can happen to matches: they are dropped, they become pieces, or they are joined to other pieces.
var behaviors = []string{"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}

// parseMatcher makes the pre-tokenizers of a tokenizer.json that look for matches.
func parseMatcher(typ string, part json.RawMessage) (splitter, error) {
	var file struct {
		Type       string          `json:"type"`
		Pattern    json.RawMessage `json:"pattern"`
		Behavior   string          `json:"behavior"`
		Invert     bool            `json:"invert"`
		Individual bool            `json:"individual_digits"`
		Delimiter  string          `json:"delimiter"`
	}
	if err := format.Decode(part, &file); err != nil {
		return nil, err
	}
	m := matcher{invert: file.Invert, behavior: file.Behavior}
	switch typ {
	case "Split":
		find, scan, err := parsePattern(file.Pattern)
		if err != nil {
			return nil, err
		}
		if scan != nil && (m.behavior == "Isolated" || m.behavior == "Removed" && m.invert) {
			return scanned(scan), nil
		}
		m.find = find
	case "Digits":
		m.find, m.behavior = first(characters.IsNumber), "Contiguous"
		if file.Individual {
			m.behavior = "Isolated"
		}
	case "Punctuation":
		m.find = first(characters.IsPunctuation)
		if m.behavior == "" {
			m.behavior = "Isolated"
		}
	case "Whitespace":
		m.find, m.invert, m.behavior = wordOrNot, true, "Removed"
	case "WhitespaceSplit":
		m.find, m.behavior = first(unicode.IsSpace), "Removed"
	case "BertPreTokenizer":
		return bertSplitter{}, nil
	case "CharDelimiterSplit":
		if utf8.RuneCountInString(file.Delimiter) != 1 {
			return nil, fmt.Errorf("its delimiter must be one character, got %.100q", file.Delimiter)
		}
		m.find, m.behavior = literal(file.Delimiter), "Removed"
	default:
		return nil, format.Unsupported(typ)
	}
	if !slices.Contains(behaviors, m.behavior) {
		return nil, fmt.Errorf("its behavior must be one of %s, got %.100q", strings.Join(behaviors, ", "), m.behavior)
	}
	return m, nil
}

// parsePattern returns a function that finds the first match of a pattern, and the pattern's scanner if it has one.
func parsePattern(part json.RawMessage) (func(text string) (start, end int), patterns.Scanner, error) {
	var pattern struct{ String, Regex *string }
	if err := format.Decode(part, &pattern); err != nil {
		return nil, nil, fmt.Errorf("its pattern: %w", err)
	}
	switch {
	case pattern.String != nil && pattern.Regex == nil:
		return literal(*pattern.String), nil, nil
	case pattern.Regex == nil:
		return nil, nil, fmt.Errorf("its pattern must have a String or a Regex, got %.200s", part)
	}
	switch *pattern.Regex {
	case " {2,}": // tokenizers that were made from SentencePiece models have this pattern
		return manySpaces, nil, nil
	case `\s{2,}|[\n\r\t]`: // DeBERTa-v2's
		return otherSpaces, nil, nil
	}
	scan, ok := patterns.Scanners[*pattern.Regex]
	if !ok {
		return nil, nil, fmt.Errorf("the pattern %.400q isn't known: only the patterns of GPT-2, cl100k, o200k, Llama 3 and Qwen are", *pattern.Regex)
	}
	return func(text string) (start, end int) { return 0, scan(text) }, scan, nil
}

// literal returns a function that finds a string. The empty string has no match.
func literal(s string) func(text string) (start, end int) {
	return func(text string) (start, end int) {
		i := strings.Index(text, s)
		if i < 0 || s == "" {
			return len(text), len(text)
		}
		return i, i + len(s)
	}
}

// otherSpaces finds two or more white spaces, or one that ends a line or is a tab.
func otherSpaces(text string) (start, end int) {
	for start < len(text) {
		found := strings.IndexFunc(text[start:], unicode.IsSpace)
		if found < 0 {
			break
		}
		start += found
		first, width := utf8.DecodeRuneInString(text[start:])
		end = len(text) - len(strings.TrimLeftFunc(text[start:], unicode.IsSpace))
		if end > start+width || first == '\n' || first == '\r' || first == '\t' {
			return start, end
		}
		start = end
	}
	return len(text), len(text)
}

// manySpaces finds two or more spaces.
func manySpaces(text string) (start, end int) {
	start = strings.Index(text, "  ")
	if start < 0 {
		return len(text), len(text)
	}
	return start, len(text) - len(strings.TrimLeft(text[start:], " "))
}

// first returns a function that finds the first character of a class.
func first(isIn func(r rune) bool) func(text string) (start, end int) {
	return func(text string) (start, end int) {
		for i, r := range text {
			if isIn(r) {
				return i, i + utf8.RuneLen(r)
			}
		}
		return len(text), len(text)
	}
}

// wordOrNot finds \w+|[^\w\s]+.
func wordOrNot(text string) (start, end int) {
	start = strings.IndexFunc(text, func(r rune) bool { return !unicode.IsSpace(r) })
	if start < 0 {
		return len(text), len(text)
	}
	word := startsWithWord(text[start:])
	n := strings.IndexFunc(text[start:], func(r rune) bool { return characters.IsWord(r) != word || !word && unicode.IsSpace(r) })
	if n < 0 {
		return start, len(text)
	}
	return start, start + n
}

func (m matcher) split(a pipe.Text, yield func(pipe.Text)) {
	pieceStart, pieceEnd := 0, 0 // the unfinished piece
	afterMatch := false          // whether the last part was a match
	m.parts(a.Content, func(start, end int, match bool) {
		joined := false // whether this part continues the unfinished piece
		switch m.behavior {
		case "MergedWithPrevious":
			joined = match && !afterMatch
		case "MergedWithNext":
			joined = afterMatch && !match
		case "Contiguous":
			joined = match == afterMatch && pieceEnd > 0
		case "Removed":
			if match {
				start = end
			}
		}
		if !joined {
			if pieceStart < pieceEnd {
				yield(a.Sub(pieceStart, pieceEnd))
			}
			pieceStart = start
		}
		pieceEnd, afterMatch = end, match
	})
	if pieceStart < pieceEnd {
		yield(a.Sub(pieceStart, pieceEnd))
	}
}

// parts calls do for each match, and for each part between matches, in the order of the text.
func (m matcher) parts(text string, do func(start, end int, match bool)) {
	for done := 0; done < len(text); {
		start, end := m.find(text[done:])
		if start > 0 {
			do(done, done+start, m.invert)
		}
		if start < end {
			do(done+start, done+end, !m.invert)
		}
		done += end
	}
}

// scanned splits a text with the Scanner of a pattern.
type scanned patterns.Scanner

func (scan scanned) split(a pipe.Text, yield func(pipe.Text)) {
	for start := 0; start < len(a.Content); {
		end := start + scan(a.Content[start:])
		yield(a.Sub(start, end))
		start = end
	}
}

// bertSplitter splits a text into words and punctuation characters, and drops white space.
type bertSplitter struct{}

func (bertSplitter) split(a pipe.Text, yield func(pipe.Text)) {
	start := 0 // first byte of the current word
	for i := 0; i < len(a.Content); {
		r, n := rune(a.Content[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(a.Content[i:])
		}
		space := unicode.IsSpace(r)
		if space || characters.IsPunctuation(r) {
			if start < i {
				yield(a.Sub(start, i))
			}
			if !space {
				yield(a.Sub(i, i+n))
			}
			start = i + n
		}
		i += n
	}
	if start < len(a.Content) {
		yield(a.Sub(start, len(a.Content)))
	}
}
