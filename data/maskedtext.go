package data

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/heed-go/heed/data/tokenizer"
)

// KindMaskedText predicts the masked symbols of a text (Devlin et al., 2018).
const KindMaskedText Kind = "mlm"

// A MaskedText is the Coder of KindMaskedText. A source has masks, and the answer is the source with a symbol in place
// of each mask. Only masks have targets. The id of a mask follows the symbols, and also fills Inputs as padding. A
// published model has its own id for masks, and special tokens before and after a source. Sources aren't cut.
type MaskedText struct {
	coder
	mask          int    // id of a mask
	name          string // text that stands for a mask in a source, such as [MASK]
	before, after []int  // special tokens
	symbols       []int  // all ids of text, without special tokens
}

func newMaskedText(c coder) (Coder, error) {
	m := &MaskedText{coder: c, mask: c.source.Len(), name: "[MASK]"}
	tokens, special := m.mask, map[int]bool{}
	if c.published != nil {
		m.mask, m.name, tokens = c.rule.Published.Mask, "", min(tokens, c.rule.Published.Tokens)
	}
	for name, id := range c.source.Special() {
		if special[id] = true; id == m.mask {
			m.name = name
		}
	}
	for id := range tokens {
		if !special[id] {
			m.symbols = append(m.symbols, id)
		}
	}
	if c.published == nil {
		m.source = symbolTokenizer{c.source, m.name}
		m.target = m.source
		m.layout = Layout{Tokens: m.mask + 1, Classes: m.mask + 1, Len: c.rule.MaxLen, TargetLen: c.rule.MaxLen, Start: -1, End: -1, Pad: m.mask}
		return m, nil
	}
	m.layout = c.sequenceLayout(c.rule.Published.Tokens)
	m.layout.TargetLen = m.layout.Len
	input, err := c.published.Input("a")
	for i, part := 0, &m.before; i < len(input.Tokens); i++ {
		if input.Texts[i] >= 0 {
			part = &m.after
		} else {
			*part = append(*part, input.Tokens[i].ID)
		}
	}
	switch {
	case err != nil:
	case m.name == "" || len(m.symbols) == 0:
		err = errors.New("the tokenizer of the published model has no token for masks, so the model can't learn masked text")
	case m.Window() < 1:
		err = fmt.Errorf("MaxLen must be more than %d, the number of special tokens around a text, got %d", m.layout.Len-m.Window(), m.layout.Len)
	}
	return m, err
}

// ID returns the id of a mask.
func (m *MaskedText) ID() int { return m.mask }

// Name returns the text that stands for a mask in a source, such as [MASK].
func (m *MaskedText) Name() string { return m.name }

// Window returns the number of symbols of a text in a row: MaxLen without special tokens.
func (m *MaskedText) Window() int { return m.layout.Len - len(m.before) - len(m.after) }

// maskRate is the share of symbols that Mask makes targets.
const maskRate = 0.15

// Mask returns a batch of windows of a text, each with Window symbols, in which some symbols are targets: 15 % of each
// row, rounded, but at least one. In the Inputs, 80 % of them are masks, 10 % are random symbols, and 10 % are
// unchanged. The choice for a row depends only on its window, the seed, the epoch and its number. Special tokens are
// never targets. Mask returns an error if the windows have another length, or not one number per row.
func (m *MaskedText) Mask(windows Batch, seed uint64, epoch int, numbers []int) (Batch, error) {
	if windows.Len != m.Window() || windows.Size != len(numbers) {
		return Batch{}, fmt.Errorf("Mask needs windows of %d symbols and a number for each, got %d windows of %d symbols and %d numbers", m.Window(), windows.Size, windows.Len, len(numbers))
	}
	b, err := newBatch(windows.Size, m.layout)
	if err != nil {
		return Batch{}, err
	}
	for row, number := range numbers {
		rng, window, start := newRand(seed, forMasks, epoch, number), windows.Inputs[row*windows.Len:][:windows.Len], row*b.Len+len(m.before)
		b.Lengths[row] = copy(b.Inputs[row*b.Len:], slices.Concat(m.before, window, m.after))
		left := max(1, int(math.Round(maskRate*float64(len(window)))))
		for _, i := range rng.Perm(len(window)) {
			if _, ok := slices.BinarySearch(m.symbols, window[i]); !ok || left == 0 {
				continue
			}
			left--
			b.Targets[start+i] = window[i]
			switch x := rng.Float64(); {
			case x < 0.8:
				b.Inputs[start+i] = m.mask
			case x < 0.9:
				b.Inputs[start+i] = m.symbols[rng.IntN(len(m.symbols))]
			}
		}
	}
	return b, nil
}

func (m *MaskedText) Batch(examples []Example) (Batch, error) {
	return m.batch(examples, func(b *Batch, row int, e Example) error {
		ids, err := m.ids(e.Source)
		switch {
		case err != nil:
			return err
		case len(ids) > b.Len:
			return fmt.Errorf("the input has %d tokens, but the model reads at most %d: give a shorter one", len(ids), b.Len)
		case !slices.Contains(ids, m.mask):
			return fmt.Errorf("the input has no mask: write %s where a symbol is missing, and the model fills it in", m.name)
		}
		b.Lengths[row] = copy(b.Inputs[row*b.Len:], ids)
		if e.Answer == "" {
			return nil
		}
		answer, err := m.ids(e.Answer)
		if err == nil && len(answer) != len(ids) {
			err = fmt.Errorf("the answer must be the source with a symbol in place of each mask: it has %d tokens and the source %d", len(answer), len(ids))
		}
		for i, id := range ids {
			if err == nil && id == m.mask {
				b.Targets[row*b.Len+i] = answer[i]
			}
		}
		return err
	})
}

// ids returns the ids of a source, with special tokens around it.
func (m *MaskedText) ids(source string) ([]int, error) {
	if m.published == nil {
		return m.source.Encode(source)
	}
	tokens, err := m.published.Tokenize(source, tokenizer.Options{Special: true}) // a source may have names of masks
	ids := slices.Clone(m.before)
	for _, t := range tokens {
		ids = append(ids, t.ID)
	}
	ids = append(ids, m.after...)
	return ids, cmp.Or(err, m.rule.Published.known(ids))
}

func (m *MaskedText) Answer(targets []int) (string, error) {
	if around := len(m.before) + len(m.after); len(targets) >= around {
		targets = targets[len(m.before) : len(targets)-len(m.after)]
	}
	return m.read(targets)
}
