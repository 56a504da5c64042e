package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

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
	for name, part := range map[string]json.RawMessage{"normalizer": file.Normalizer, "pre_tokenizer": file.PreTokenizer, "post_processor": file.PostProcessor, "decoder": file.Decoder} {
		if err := checkPart(part); err != nil {
			return nil, fmt.Errorf("its %s: %w", name, err)
		}
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
	if p.decoder == nil {
		p.decoder = eachToken(func(i int, token string) string {
			if i > 0 {
				token = " " + token
			}
			return token
		})
	}
	if err := p.addTokens(file.AddedTokens); err != nil {
		return nil, err
	}
	if p.template, err = parseTemplate(file.PostProcessor); err != nil {
		return nil, fmt.Errorf("its post_processor: %w", err)
	}
	for _, items := range [][]templateItem{p.template.single, p.template.pair} {
		if n := added(items); n > mostAdded {
			return nil, fmt.Errorf("its post_processor adds %d special tokens, more than %d", n, mostAdded)
		}
		for _, item := range items {
			for _, id := range item.ids {
				if id < 0 || id >= len(p.tokens) || p.tokens[id] == "" {
					return nil, fmt.Errorf("its post_processor adds the id %d, which isn't one of the tokenizer's", id)
				}
			}
			if item.typ < 0 {
				return nil, fmt.Errorf("its post_processor has a type_id below 0, %d", item.typ)
			}
		}
	}
	for _, token := range p.tokens {
		if p.template.trim {
			p.spaces = append(p.spaces, spacesOf(token))
		}
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
	b := newBudget(len(p.file))
	most := mostIDs(len(p.ids) + len(added))
	for i, t := range added {
		if t.Content == "" || len(t.Content) > longestToken || t.ID < 0 || t.ID >= most {
			return fmt.Errorf("added token %d must have a content of 1 to %d bytes, and an id from 0 to %d, got %.100q and %d", i, longestToken, most-1, t.Content, t.ID)
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
			if p.normalizer != nil {
				b.bytes = longestToken
				if t.Content = p.normalizer.normalize(aligned{text: t.Content, budget: b}).text; b.spent() || len(t.Content) > longestToken {
					return fmt.Errorf("added token %d, %.100q, becomes longer than %d bytes when it is normalized", i, p.tokens[t.ID], longestToken)
				}
			}
			if t.Content != "" {
				p.tokens[t.ID] = t.Content // other libraries decode the id to this, too
			}
			normal = append(normal, t)
		} else {
			raw = append(raw, t)
		}
	}
	p.raw, p.normal = newAddedTokens(raw), newAddedTokens(normal)
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
	var m struct {
		Type   *string         `json:"type"`
		Merges json.RawMessage `json:"merges"`
	}
	if err := json.Unmarshal(part, &m); err != nil || m.Type == nil && m.Merges == nil {
		return nil, fmt.Errorf("expected an object with a type, got %.200s", part)
	}
	typ := "BPE" // files of old versions have no type
	if m.Type != nil {
		typ = *m.Type
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
	for token, id := range ids {
		if most = max(most, id); len(token) > longestToken {
			return nil, fmt.Errorf("tokens of the vocab must have at most %d bytes, got %d", longestToken, len(token))
		}
	}
	if limit := mostIDs(len(ids)); most >= limit {
		return nil, fmt.Errorf("ids of a vocab with %d tokens must be below %d, got %d", len(ids), limit, most)
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
