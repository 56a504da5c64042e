package data

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/heed-go/heed/data/tokenizer"
)

// KindQA finds the answer to a question in a context. A source is the question and the context, with a tab between
// them, so a rule needs Pairs. An answer is a part of the context: its text, or its text and the context's byte at
// which it begins, with a tab between them. Several right answers have tabs between them, so a tab of the context is a
// space in them. An answer without text means that the context has none. Without a byte, the first occurrence of the
// text is meant.
const KindQA Kind = "qa"

// A Window is what a model reads of a question and its context: the question, and as much of the context as fits. For
// tags of a published model, the context is the text, and there is no question. See Rule.Windows.
type Window struct {
	IDs      []int
	Template bool              // the first of the IDs is a special token, and not the question's
	Context  int               // index in IDs of the first token of the context
	Before   int               // number of tokens of the context before the window
	Tokens   []tokenizer.Token // the context's; their parts count bytes of the context
	Words    []int             // number of the word that each of the Tokens is a part of; nil if the tokenizer doesn't say
}

// UsualWindow is the MaxLen of models for KindQA, unless they read less at once or the user sets it. Published ones
// were mostly trained with it, and the reference library's pipeline reads no more.
const UsualWindow = 384

const (
	maxStride  = 128     // greatest number of tokens that two windows share
	maxWindows = 1 << 14 // greatest number of windows of a source
)

// Windows returns the windows in which a model for KindQA, or a published one for KindTagging with Classes, reads a
// source. A window has at most MaxLen ids. Two windows next to each other share 128 tokens of the context, or MaxLen/2
// if that is less. If a long question leaves no more room than that, if there would be more than 16,384 windows, or
// for short windows of KindTagging, they share half of the room. For KindTagging, the context may have no tokens; then
// there is one window.
func (r *Rule) Windows(source string) ([]Window, error) {
	question, context, ok := strings.Cut(source, "\t")
	tags := r.Kind == KindTagging
	if !tags && (!ok || strings.TrimSpace(question) == "" || strings.TrimSpace(context) == "") {
		return nil, errors.New("it must be a question and a context with a tab between them")
	}
	var whole Window
	var after []int // ids after the context
	var err error
	if p, ok := r.Source.(*tokenizer.Pipeline); tags {
		whole, after, err = r.publishedWindow(p, source)
	} else if ok && r.Published != (Published{}) {
		whole, after, err = r.publishedWindow(p, question, context)
	} else if whole.IDs, err = r.Source.Encode(question); err == nil {
		whole.IDs = append(whole.IDs, r.Source.Len()) // see pairTokenizer
		whole.Context = len(whole.IDs)
		whole.Tokens, err = r.Source.Tokenize(context, tokenizer.Options{})
	}
	if err != nil {
		return nil, err
	}
	n, before := len(whole.Tokens), whole.IDs
	room := r.MaxLen - len(before) - len(after)
	if n == 0 && !(tags && len(before)+len(after) > 0) {
		return nil, errors.New("the tokenizer has no token for it")
	}
	if room < 1 {
		return nil, fmt.Errorf("the question and special tokens leave no room for the context: they are %d tokens, and the model reads %d at once", len(before)+len(after), r.MaxLen)
	}
	shared := min(maxStride, r.MaxLen/2)
	if tags {
		shared = min(maxStride, room/2)
	}
	if room <= shared || (n-room)/(room-shared) > maxWindows {
		shared = room / 2
	}
	if (n-room)/(room-shared) > maxWindows {
		return nil, fmt.Errorf("it has %d tokens, and there is room for %d at once: at most %d parts are read", n, room, maxWindows)
	}
	var windows []Window
	for start, end := 0, -1; end < n; start += room - shared {
		end = min(start+room, n)
		w := whole
		w.Before = start
		w.IDs, w.Tokens = append(make([]int, 0, len(before)+end-start+len(after)), before...), whole.Tokens[start:end]
		if tags && start > 0 { // as in transformers' pipeline
			w.Tokens = slices.Clone(w.Tokens)
			w.Tokens[0] = r.Source.(*tokenizer.Pipeline).AsFirst(w.Tokens[0], source)
		}
		for _, t := range w.Tokens {
			w.IDs = append(w.IDs, t.ID)
		}
		w.IDs = append(w.IDs, after...)
		if whole.Words != nil {
			w.Words = whole.Words[start:end]
		}
		windows = append(windows, w)
	}
	return windows, nil
}

// publishedWindow returns the tokens of texts in one window, which has only the IDs before the last text, the context,
// and the ids after it.
func (r *Rule) publishedWindow(p *tokenizer.Pipeline, texts ...string) (whole Window, after []int, err error) {
	input, err := p.WithLimit(0).Input(texts[0], texts[1:]...)
	for i, t := range input.Tokens {
		switch {
		case input.Texts[i] == len(texts)-1:
			whole.Tokens, whole.Words = append(whole.Tokens, t), append(whole.Words, input.Words[i])
		case whole.Tokens == nil:
			whole.IDs = append(whole.IDs, t.ID)
		default:
			after = append(after, t.ID)
		}
		err = cmp.Or(err, r.Published.known([]int{t.ID}))
	}
	whole.Template, whole.Context = err == nil && len(input.Texts) > 0 && input.Texts[0] < 0, len(whole.IDs)
	return whole, after, err
}

// place returns the positions in IDs of the first and the last token of the part of the context from byte start to
// before byte end. It returns false if the window doesn't have all of this part.
func (w *Window) place(start, end int) (first, last int, ok bool) {
	n := len(w.Tokens)
	if w.Tokens[0].Start > start || w.Tokens[n-1].End < end {
		return 0, 0, false
	}
	for last = n - 1; last > 0 && w.Tokens[last-1].End >= end; last-- {
	}
	for first < last && w.Tokens[first+1].Start <= start {
		first++
	}
	return w.Context + first, w.Context + last, true
}

// Divide returns an example of KindQA once for each of its source's Windows, and the numbers of their ids. A Coder
// needn't tokenize these examples again.
func (r *Rule) Divide(e Example) (examples []Example, lengths []int, err error) {
	windows, err := r.Windows(e.Source)
	if err != nil {
		return nil, nil, fmt.Errorf("source %.100q: %w", e.Source, err)
	}
	start, end := 0, 0 // of the answer
	if texts, starts := AnswersOf(e.Answer); texts != nil {
		_, context, _ := strings.Cut(e.Source, "\t")
		context = strings.ReplaceAll(context, "\t", " ") // an answer has no tabs
		if start = starts[0]; start < 0 {
			start = strings.Index(context, texts[0])
		}
		if start < 0 || start > len(context) || !strings.HasPrefix(context[start:], texts[0]) {
			return nil, nil, fmt.Errorf("the answer %.100q isn't in the context at byte %d", texts[0], start)
		}
		end = start + len(texts[0])
	}
	for _, w := range windows {
		row := &encodedAnswer{ids: make([]int32, len(w.IDs))}
		for i, id := range w.IDs {
			row.ids[i] = int32(id)
		}
		if first, last, ok := w.place(start, end); ok && end > 0 {
			row.first, row.last = int32(first), int32(last)
		}
		e.encoded = row
		examples, lengths = append(examples, e), append(lengths, len(w.IDs))
	}
	return examples, lengths, nil
}

// AnswersOf returns the texts of an answer of KindQA, and the byte of the context at which each begins, or −1 if the
// answer doesn't say so. It returns none if the context has no answer.
func AnswersOf(answer string) (texts []string, starts []int) {
	for parts := strings.Split(answer, "\t"); len(parts) > 0 && parts[0] != ""; parts = parts[min(2, len(parts)):] {
		start := -1
		if len(parts) > 1 {
			if n, err := strconv.Atoi(parts[1]); err == nil {
				start = n
			}
		}
		texts, starts = append(texts, parts[0]), append(starts, start)
	}
	return texts, starts
}

// answerCoder is the Coder of KindQA. A row's inputs are one of the example's Windows, then padding. Its targets are
// the positions of the first and the last token of the first answer, or 0 and 0 if the window doesn't have all of it.
type answerCoder struct{ coder }

// encodedAnswer is a row of an answerCoder's batch. There may be many, so the numbers are small.
type encodedAnswer struct {
	ids         []int32
	first, last int32
}

func newAnswerCoder(c coder) (Coder, error) {
	if !c.rule.Pairs {
		return nil, errors.New("a rule of kind qa needs Pairs: a source is a question and a context")
	}
	c.layout = c.sequenceLayout(2)
	c.layout.TargetLen = 2
	return &answerCoder{c}, nil
}

func (a *answerCoder) Batch(examples []Example) (Batch, error) {
	return a.batch(examples, func(b *Batch, row int, e Example) error {
		if e.encoded == nil {
			windows, _, err := a.rule.Divide(e)
			if err != nil {
				return a.errorf("%w", err)
			}
			e = windows[0]
		}
		b.Lengths[row] = len(e.encoded.ids)
		for i, id := range e.encoded.ids {
			b.Inputs[row*b.Len+i] = int(id)
		}
		b.Targets[2*row], b.Targets[2*row+1] = int(e.encoded.first), int(e.encoded.last)
		return nil
	})
}

func (a *answerCoder) Answer([]int) (string, error) {
	return "", errors.New("the answer of a rule of kind qa is a part of its source, which targets alone don't have")
}
