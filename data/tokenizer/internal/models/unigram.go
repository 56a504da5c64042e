package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
	"github.com/heed-go/heed/data/tokenizer/internal/trie"
	"github.com/heed-go/heed/internal/jsonkeys"
)

// Unigram is the model of Kudo, "Subword Regularization" (2018), without sampling. There are many ways to cover a piece
// with tokens; Viterbi's algorithm finds the one with the greatest sum of scores.
type Unigram struct {
	tokens       []string
	scores       []float64
	keys         *trie.Trie
	unknownID    int     // id of a character that no token covers; -1 makes it an error
	unknownScore float64 // score of such a character
	bytes        [256]int32
	byteFallback bool // characters that no token covers become their bytes

	paths sync.Pool // of *[]unigramStep
}

// A unigramStep is the last token of the best path to a place in a piece.
type unigramStep struct {
	score float64 // of the whole path
	start int32   // where the token starts; -1 if no path ends here
	id    int32
}

// ParseUnigram makes the model Unigram of a tokenizer.json.
func ParseUnigram(members format.Members) (*Unigram, error) {
	var file struct {
		Type         string `json:"type"`
		UnknownID    *int   `json:"unk_id"`
		ByteFallback bool   `json:"byte_fallback"`
	}
	m := &Unigram{unknownID: -1}
	list, err := members.Take("vocab", '[')
	if err == nil {
		err = m.parseVocab(list)
	}
	if err == nil {
		err = format.CheckLengths(m.tokens)
	}
	if err == nil {
		err = members.Decode(&file)
	}
	if err != nil {
		return nil, err
	}
	m.byteFallback = file.ByteFallback
	if file.UnknownID != nil {
		if m.unknownID = *file.UnknownID; m.unknownID < 0 || m.unknownID >= len(m.tokens) {
			return nil, fmt.Errorf("its unk_id must be an id of the vocab, below %d, got %d", len(m.tokens), m.unknownID)
		}
	}
	for i := range m.bytes {
		m.bytes[i] = -1
	}
	for id, token := range m.tokens {
		if b, ok := ByteOf(token); ok {
			m.bytes[b] = int32(id)
		}
	}
	const penalty = 10
	m.unknownScore = slices.Min(m.scores) - penalty
	m.byteFallback = m.byteFallback && slices.Min(m.bytes[:]) >= 0
	m.keys = trie.New(m.tokens)
	return m, nil
}

// parseVocab reads tokens and their scores, each in the form ["the", -3.2].
func (m *Unigram) parseVocab(list json.RawMessage) error {
	n := min(bytes.Count(list, []byte("[")), format.MaxEntries)
	m.tokens, m.scores = make([]string, 0, n), make([]float64, 0, n)
	err := jsonkeys.Elements(list, func(value []byte) error {
		var pair [2]json.RawMessage
		var token string
		var score float64
		n := 0
		if value[0] == '[' {
			jsonkeys.Elements(value, func(part []byte) error {
				pair[min(n, 1)], n = part, n+1
				return nil
			})
		}
		if n != 2 || json.Unmarshal(pair[0], &token) != nil || json.Unmarshal(pair[1], &score) != nil {
			return fmt.Errorf("expected a token and its score, got %.100s", value)
		}
		if m.tokens, m.scores = append(m.tokens, token), append(m.scores, score); len(m.tokens) > format.MaxEntries {
			return fmt.Errorf("its vocab must have at most %d tokens", format.MaxEntries)
		}
		return nil
	})
	if err == nil && len(m.tokens) == 0 {
		err = errors.New("its vocab must have at least one token")
	}
	return err
}

// Vocabulary returns the tokens by their ids.
func (m *Unigram) Vocabulary() []string { return m.tokens }

// Unknown returns the id of the unknown token, or -1.
func (m *Unigram) Unknown() int { return m.unknownID }

// Encode appends the tokens of a piece.
func (m *Unigram) Encode(tokens []pipe.Token, piece string, b *pipe.Budget) ([]pipe.Token, error) {
	pool, _ := m.paths.Get().(*[]unigramStep)
	if pool == nil {
		pool = new([]unigramStep)
	}
	defer m.paths.Put(pool)
	*pool = slices.Grow((*pool)[:0], len(piece)+1)[:len(piece)+1]
	path := *pool // path[i] ends at byte i
	if m.viterbi(path, piece, b); b.Spent() {
		return tokens, b.Err
	}

	unknown := func(end int) bool { return path[end].id < 0 || int(path[end].id) == m.unknownID }
	first := len(tokens)
	for end := len(piece); end > 0; {
		start, id := int(path[end].start), int(path[end].id)
		if unknown(end) {
			for start > 0 && unknown(start) { // neighbouring unknown characters are one token
				start = int(path[start].start)
			}
			n, together := m.keys.Longest(piece[start:end], b)
			switch {
			case n == end-start: // the unknown characters together are a token, such as <unk>
				tokens = append(tokens, pipe.Token{ID: int(together), Start: start, End: end})
			case m.byteFallback:
				for i := end - 1; i >= start; i-- {
					tokens = append(tokens, pipe.Token{ID: int(m.bytes[piece[i]]), Start: start, End: end})
				}
			case m.unknownID < 0:
				return tokens[:first], errors.New("the model has no unknown token for " + fmt.Sprintf("%.100q", piece[start:end]))
			default:
				tokens = append(tokens, pipe.Token{ID: m.unknownID, Start: start, End: end})
			}
		} else {
			tokens = append(tokens, pipe.Token{ID: id, Start: start, End: end})
		}
		end = start
	}
	slices.Reverse(tokens[first:])
	return tokens, nil
}

// viterbi sets path to the last steps of the best paths to each byte. A step for an unknown character has the id -1.
func (m *Unigram) viterbi(path []unigramStep, piece string, b *pipe.Budget) {
	for i := range path {
		path[i].start = -1
	}
	path[0] = unigramStep{}
	step := func(start, end int, id int32, score float64) {
		if score += path[start].score; path[end].start < 0 || score > path[end].score {
			path[end] = unigramStep{score, int32(start), id}
		}
	}
	for start := 0; start < len(piece) && !b.Spent(); {
		_, n := utf8.DecodeRuneInString(piece[start:])
		isToken := false // whether the character at start is a token
		for node := m.keys.Child(0, piece[start:]); node > 0; node = m.keys.Child(node, piece[start:]) {
			b.Take(pipe.StepsOfNode)
			if key := m.keys.Nodes[node]; key.Value >= 0 {
				step(start, start+int(key.Size), key.Value, m.scores[key.Value])
				isToken = isToken || int(key.Size) == n
			}
		}
		if !isToken {
			step(start, start+n, -1, m.unknownScore)
		}
		start += n
	}
}
