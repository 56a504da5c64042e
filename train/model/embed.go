package model

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/setting"
)

// Embed returns a vector of each text, and the number of tokens that the model read. As the model's folder says, it
// puts the default prompt before each text, cuts long texts, pools the states and normalises the vectors. Like
// PredictAll, Embed computes batches of texts with similar lengths, on all processors; a vector doesn't depend on the
// other texts, except for rounding. A model of masked text embeds texts, too: a vector is the mean of the states before
// its head.
//
// The error is an *InputError if the model doesn't embed texts, or if it can't read one of them. When ctx is done,
// Embed returns ctx.Err().
func (m *Model) Embed(ctx context.Context, texts []string) ([][]float32, int, error) {
	return m.embed(ctx, texts)
}

// EmbedQueries is like Embed for texts with which others are searched: it puts the prompt named query before each text,
// if the folder has one. In sentence-transformers, this is encode_query.
func (m *Model) EmbedQueries(ctx context.Context, texts []string) ([][]float32, int, error) {
	return m.embed(ctx, texts, "query")
}

// EmbedDocuments is like Embed for texts among which queries search: it puts the prompt named document, passage or
// corpus before each text, the first that the folder has. In sentence-transformers, this is encode_document.
func (m *Model) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, int, error) {
	return m.embed(ctx, texts, "document", "passage", "corpus")
}

// embed is Embed with prompts: see vectors.
func (m *Model) embed(ctx context.Context, texts []string, prompts ...string) ([][]float32, int, error) {
	if f, ok := m.Network.(filler); ok {
		m = f.embeds
	}
	if err := m.Config.Describe().Embed; err != nil {
		return nil, 0, &InputError{strings.Join(texts[:min(1, len(texts))], ""), err}
	}
	vectors, answers, tokens, err := m.vectors(ctx, texts, prompts...)
	for _, a := range answers {
		if err == nil && a.Err != nil {
			return nil, 0, a.Err
		}
	}
	return vectors, tokens, err
}

// Vectors returns a vector of each text, what else is known of the text, and the number of tokens that the model read.
// If an answer has an Err, its vector is nil.
func (m *Model) Vectors(ctx context.Context, texts []string) (vectors [][]float32, answers []Answer, tokens int, err error) {
	return m.vectors(ctx, texts)
}

// vectors is Vectors with the first of the prompts that the folder has, instead of the default prompt.
func (m *Model) vectors(ctx context.Context, texts []string, prompts ...string) (vectors [][]float32, answers []Answer, tokens int, err error) {
	prompt := m.prompt
	for _, name := range slices.Backward(prompts) {
		if text, ok := m.prompts()[name]; ok {
			prompt = text
		}
	}
	vectors, answers = make([][]float32, len(texts)), make([]Answer, len(texts))
	var rows []query
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, nil, 0, err
		}
		b, answer := m.encode(prompt + text)
		if answers[i] = answer; answer.Err == nil {
			rows = append(rows, query{ids: b.Inputs[:b.Lengths[0]], place: i})
			tokens += b.Lengths[0]
		}
	}
	if err := m.choose(ctx, rows, 1); err != nil {
		return nil, nil, 0, err
	}
	for _, q := range rows {
		vectors[q.place] = q.choices[0].vector
	}
	return vectors, answers, tokens, nil
}

// prompts returns the prompts of a published folder, by their names.
func (m *Model) prompts() map[string]string {
	if m.published == nil {
		return nil
	}
	return m.published.model.Prompts
}

// Similarity says how the vectors of texts are compared: cosine, or what a published folder says, such as dot.
func (m *Model) Similarity() string {
	if m.published == nil {
		return "cosine"
	}
	return cmp.Or(m.published.model.Similarity, "cosine")
}

// Sum returns a checksum of what the model's answers depend on: the weights, the settings and the tokenizer of the
// folder that it was opened from. It reads the weights again.
func (m *Model) Sum() (string, error) {
	if m.sum == nil {
		return "", errors.New("the model has no folder yet")
	}
	return m.sum()
}

// SetPrompt chooses the text that Embed puts before each text, by its name in the folder's
// config_sentence_transformers.json, such as query. For a published model that translates or summarises, it chooses the
// text before each input by its name in the task_specific_params of config.json, such as summarization, with the beams
// and the rules that stand there. An empty name stands for no text. SetPrompt returns a *ConfigError if there is no
// such name. Don't call it at the same time as other methods.
func (m *Model) SetPrompt(name string) error {
	prompts := m.prompts()
	text, ok := prompts[name]
	if len(prompts) == 0 && name != "" {
		return setting.Errorf("%s is for models with prompts, and this one has none, got %q", setting.Path("prompt_name"), name)
	}
	if !ok && name != "" {
		return setting.Errorf("%s must be one of the model's prompts, %q, got %q", setting.Path("prompt_name"), slices.Sorted(maps.Keys(prompts)), name)
	}
	if m.prompt = text; m.published == nil || !m.Config.about().decoder {
		return nil
	}
	c, err := m.published.model.For(name)
	if err != nil {
		return setting.Errorf("%s %.100q: %w", setting.Path("prompt_name"), name, err)
	}
	m.published.model = c
	rule := m.Config.Task
	if m.Config.Opened() { // a run answers with at most as many tokens as it learned
		headOf(rule.Kind).published(&c, &rule)
	}
	return m.setRule(rule)
}
