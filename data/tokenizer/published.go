package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// mostIDs is the greatest number of ids of a Pipeline.
const mostIDs = 1 << 24

// parsePipeline makes a Pipeline from a tokenizer.json. Other formats are converted to this one first, so that there is
// one reader.
func parsePipeline(content []byte) (*Pipeline, error) {
	var file struct {
		Version       json.RawMessage `json:"version"`
		Truncation    json.RawMessage `json:"truncation"`
		Padding       json.RawMessage `json:"padding"`
		AddedTokens   []addedToken    `json:"added_tokens"`
		Normalizer    json.RawMessage `json:"normalizer"`
		PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
		PostProcessor json.RawMessage `json:"post_processor"`
		Decoder       json.RawMessage `json:"decoder"`
		Model         json.RawMessage `json:"model"`
	}
	if err := decode(content, &file); err != nil {
		return nil, err
	}
	p := &Pipeline{file: content, special: map[string]int{}, spaced: map[int]bool{}}
	var err error
	if p.normalizer, err = parseNormalizer(file.Normalizer); err != nil {
		return nil, fmt.Errorf("its normalizer: %w", err)
	}
	if p.splitter, err = parseSplitter(file.PreTokenizer); err != nil {
		return nil, fmt.Errorf("its pre_tokenizer: %w", err)
	}
	if p.model, err = parseModel(file.Model, p); err != nil {
		return nil, fmt.Errorf("its model: %w", err)
	}
	if p.decoder, err = parseDecoder(file.Decoder); err != nil {
		return nil, fmt.Errorf("its decoder: %w", err)
	}
	if m, ok := p.model.(*sentencePiece); ok {
		if p.normalizer != nil || p.splitter != nil || p.decoder != nil {
			return nil, errors.New("with the model SentencePiece, its normalizer, pre_tokenizer and decoder must be null")
		}
		p.normalizer, p.decoder = m, m
	}
	if err := p.addTokens(file.AddedTokens); err != nil {
		return nil, err
	}
	if p.template, err = parseTemplate(file.PostProcessor); err != nil {
		return nil, fmt.Errorf("its post_processor: %w", err)
	}
	if p.truncation, err = parseTruncation(file.Truncation); err != nil {
		return nil, fmt.Errorf("its truncation: %w", err)
	}
	return p, nil
}

// addTokens adds the added tokens to the vocabulary.
func (p *Pipeline) addTokens(added []addedToken) error {
	p.tokens, p.unknown = slices.Clone(p.model.vocabulary()), p.model.unknown()
	p.ids = make(map[string]int, len(p.tokens)+len(added))
	for id, token := range p.tokens {
		if token != "" {
			p.ids[token] = id
		}
	}
	var raw, normal []addedToken
	for i, t := range added {
		if t.Content == "" || t.ID < 0 || t.ID >= mostIDs {
			return fmt.Errorf("added token %d must have a content, and an id from 0 to %d, got %.100q and %d", i, mostIDs-1, t.Content, t.ID)
		}
		for len(p.tokens) <= t.ID {
			p.tokens = append(p.tokens, "")
		}
		p.tokens[t.ID], p.ids[t.Content] = t.Content, t.ID
		if t.LeftStrip || t.RightStrip {
			p.spaced[t.ID] = true
		}
		if t.Special {
			p.special[t.Content] = t.ID
		}
		if t.Normalized {
			normal = append(normal, t)
		} else {
			raw = append(raw, t)
		}
	}
	p.raw = newAddedTokens(raw, func(t addedToken) string { return t.Content })
	p.normal = newAddedTokens(normal, func(t addedToken) string {
		if p.normalizer == nil {
			return t.Content
		}
		return p.normalizer.normalize(aligned{text: t.Content}).text
	})
	return nil
}

// typeOf returns the "type" of a part of a tokenizer.json, or "" if the part is missing or null.
func typeOf(part json.RawMessage) (string, error) {
	if len(part) == 0 || string(part) == "null" {
		return "", nil
	}
	var typed struct {
		Type *string `json:"type"`
	}
	if err := json.Unmarshal(part, &typed); err != nil || typed.Type == nil || *typed.Type == "" {
		return "", fmt.Errorf("expected an object with a type, got %.200s", part)
	}
	return *typed.Type, nil
}

// unsupported is the error for a type of a part that this package doesn't have.
func unsupported(typ string) error { return fmt.Errorf("the type %.100q isn't supported", typ) }

// parseModel makes the model of a tokenizer.json. It may look at the splitter of p.
func parseModel(part json.RawMessage, p *Pipeline) (model, error) {
	var m members
	if err := json.Unmarshal(part, &m); err != nil || m == nil {
		return nil, fmt.Errorf("expected an object, got %.200s", part)
	}
	typ, err := typeOf(part)
	if err != nil && m["merges"] != nil { // files of old versions have no type
		typ, err = "BPE", nil
	}
	if err != nil {
		return nil, err
	}
	switch typ {
	case "BPE":
		return parseBPE(part, isByteLevel(p.splitter))
	case "Unigram":
		return parseUnigram(part)
	case "WordPiece":
		return parseWordPiece(part)
	case "SentencePiece":
		return parseSentencePieceJSON(part)
	}
	return nil, unsupported(typ)
}

// vocabOf returns the tokens of a vocabulary, which is an object with the id of each token, by their ids.
func vocabOf(ids map[string]int) ([]string, error) {
	most := -1
	for _, id := range ids {
		most = max(most, id)
	}
	if most >= mostIDs {
		return nil, fmt.Errorf("ids of the vocab must be below %d, got %d", mostIDs, most)
	}
	tokens := make([]string, most+1)
	for _, token := range slices.Sorted(maps.Keys(ids)) { // sorted, so that the error is the same each time
		id := ids[token]
		if id < 0 || tokens[id] != "" {
			return nil, fmt.Errorf("the vocab gives the id %d to %.100q: ids must be at least 0 and differ", id, token)
		}
		tokens[id] = token
	}
	return tokens, nil
}
