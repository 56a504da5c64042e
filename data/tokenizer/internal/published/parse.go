package published

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/data/tokenizer/internal/models"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
	"github.com/heed-go/heed/data/tokenizer/internal/sentencepiece"
)

// Parse makes a Pipeline from a tokenizer.json, whose members are file. The Pipeline keeps content.
func Parse(content []byte, file format.Members) (*Pipeline, error) {
	for _, name := range []string{"normalizer", "pre_tokenizer", "post_processor", "decoder", "truncation"} {
		if err := format.CheckPart(file[name]); err != nil {
			return nil, fmt.Errorf("its %s: %w", name, err)
		}
	}
	p := &Pipeline{File: content, Special: map[string]int{}, spaced: map[int]bool{}}
	var err error
	if p.normalizer, err = parseNormalizer(file["normalizer"]); err != nil {
		return nil, fmt.Errorf("its normalizer: %w", err)
	}
	if p.splitter, err = parseSplitter(file["pre_tokenizer"]); err != nil {
		return nil, fmt.Errorf("its pre_tokenizer: %w", err)
	}
	if p.Model, err = parseModel(file["model"], p); err != nil {
		return nil, fmt.Errorf("its model: %w", err)
	}
	if p.decoder, err = parseDecoder(file["decoder"]); err != nil {
		return nil, fmt.Errorf("its decoder: %w", err)
	}
	if m, ok := p.Model.(*sentencepiece.Model); ok {
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
	added, err := format.AddedTokens(file["added_tokens"])
	if err == nil {
		err = p.addTokens(added)
	}
	if err != nil {
		return nil, err
	}
	if p.template, err = parseTemplate(file["post_processor"]); err != nil {
		return nil, fmt.Errorf("its post_processor: %w", err)
	}
	for _, items := range [][]templateItem{p.template.single, p.template.pair} {
		if n := specials(items); n > maxSpecial {
			return nil, fmt.Errorf("its post_processor adds %d special tokens, more than %d", n, maxSpecial)
		}
		for _, item := range items {
			for _, id := range item.ids {
				if id < 0 || id >= len(p.Tokens) || p.Tokens[id] == "" {
					return nil, fmt.Errorf("its post_processor adds the id %d, which isn't one of the tokenizer's", id)
				}
			}
			if item.typ < 0 {
				return nil, fmt.Errorf("its post_processor has a type_id below 0, %d", item.typ)
			}
		}
	}
	for _, token := range p.Tokens {
		if p.template.trim {
			p.spaces = append(p.spaces, spacesOf(token))
		}
	}
	if p.truncation, err = parseTruncation(file["truncation"]); err != nil {
		return nil, fmt.Errorf("its truncation: %w", err)
	}
	return p, nil
}

// addTokens adds the added tokens to the vocabulary.
func (p *Pipeline) addTokens(added []format.AddedToken) error {
	p.Tokens, p.Unknown = p.Model.Vocabulary(), p.Model.Unknown()
	if len(added) > 0 {
		p.Tokens = slices.Clone(p.Tokens)
	}
	n := len(added) // number of tokens
	for _, token := range p.Tokens {
		if token != "" {
			n++
		}
	}
	var raw, normal []format.AddedToken
	b := pipe.NewBudget(len(p.File))
	maxIDs := format.MaxIDs(n)
	for i, t := range added {
		if t.Content == "" || len(t.Content) > format.MaxTokenBytes || t.ID < 0 || t.ID >= maxIDs {
			return fmt.Errorf("added token %d must have a content of 1 to %d bytes, and an id from 0 to %d, got %.100q and %d", i, format.MaxTokenBytes, maxIDs-1, t.Content, t.ID)
		}
		for len(p.Tokens) <= t.ID {
			p.Tokens = append(p.Tokens, "")
		}
		p.Tokens[t.ID] = t.Content
		if t.LeftStrip || t.RightStrip {
			p.spaced[t.ID] = true
		}
		if t.Special {
			p.Special[t.Content] = t.ID
		}
		if t.Normalized {
			if p.normalizer != nil {
				b.Bytes = format.MaxTokenBytes
				t.Content = p.normalizer.Normalize(pipe.Text{Content: t.Content, Budget: b}).Content
				if b.Steps < 0 {
					return fmt.Errorf("normalizing the first %d added tokens takes too many steps", i+1)
				}
				if b.Err != nil || len(t.Content) > format.MaxTokenBytes {
					return fmt.Errorf("added token %d, %.100q, becomes longer than %d bytes when it is normalized", i, p.Tokens[t.ID], format.MaxTokenBytes)
				}
			}
			if t.Content != "" {
				p.Tokens[t.ID] = t.Content // other libraries decode the id to the normalised token, too
			}
			normal = append(normal, t)
		} else {
			raw = append(raw, t)
		}
	}
	p.raw, p.normal = newAddedTokens(raw), newAddedTokens(normal)
	return nil
}

// parseModel makes the model of a tokenizer.json. The splitter of p says whether the vocabulary is byte-level.
func parseModel(part json.RawMessage, p *Pipeline) (model, error) {
	file, err := format.Object(part)
	if err != nil || file["type"] == nil && file["merges"] == nil {
		return nil, fmt.Errorf("expected an object with a type, got %.200s", part)
	}
	typ := "BPE" // files of old versions have no type
	if file["type"] != nil {
		if err := json.Unmarshal(file["type"], &typ); err != nil {
			return nil, fmt.Errorf("its type must be a string, got %.100s", file["type"])
		}
	}
	prefix := map[string]string{"WordPiece": "##"}[typ]
	if content := file["continuing_subword_prefix"]; content != nil {
		_ = json.Unmarshal(content, &prefix) // the models report an error
	}
	p.Prefixed = prefix != ""
	switch typ {
	case "BPE":
		return models.ParseBPE(file, isByteLevel(p.splitter))
	case "Unigram":
		return models.ParseUnigram(file)
	case "WordPiece":
		return models.ParseWordPiece(file)
	case "SentencePiece":
		return sentencepiece.ParseJSON(file)
	}
	return nil, format.Unsupported(typ)
}
