package data

import "fmt"

// Pairs is Size sources, of up to SourceLen token ids, with their answers, of up to TargetLen, row-major. It is what an
// encoder and a decoder learn from: given the source and the answer so far, the next symbol.
//
// A source's first Lengths[r] positions are valid, the rest padding: the key lengths of attention to it. Inputs need no
// lengths: their padding comes last, where causal attention doesn't see it, and its targets are Ignore. A row beyond the
// examples, in a short last batch, has length 0.
type Pairs struct {
	Sources   []int // (Size, SourceLen)
	Lengths   []int // (Size): of Sources
	Inputs    []int // (Size, TargetLen): the start token, then the answer
	Targets   []int // (Size, TargetLen): the answer, then the end token; or Ignore
	Size      int
	SourceLen int
	TargetLen int
}

// Counted is the number of targets that count, those that aren't Ignore: the weight of this batch in a mean over many.
func (p *Pairs) Counted() int { return counted(p.Targets) }

// Translator turns the sources of a task into batches for a model that reads a source and writes its answer, such as an
// encoder with a decoder, and what the model wrote back into answers. It fits every task.
//
//	source  7 . 3 . 2 4 · ·
//	input   ⏵ 2 0 2 4 - 0 3 - 0 7
//	target  2 0 2 4 - 0 3 - 0 7 ⏎
//
// A symbol's token id is its id in the vocabulary, in sources and answers alike; End, Pad and Start come after the
// symbols. Sources are those of Task.Answer, but capital letters have become small where the task takes them for the same.
type Translator struct {
	task  Task
	vocab *Vocab
}

// NewTranslator is the translator of a task that Named made.
func NewTranslator(task Task) (*Translator, error) {
	if task.vocab == nil {
		return nil, fmt.Errorf("no task to translate: make one with Named")
	}
	return &Translator{task: task, vocab: task.vocab}, nil
}

// Vocab is the vocabulary of the task's symbols.
func (t *Translator) Vocab() *Vocab { return t.vocab }

// End is the id of the end token, the target after an answer's last symbol.
func (t *Translator) End() int { return t.vocab.Len() }

// Pad is the id of the pad token, in sources and inputs after their end.
func (t *Translator) Pad() int { return t.vocab.Len() + 1 }

// Start is the id of the start token, the first of every input.
func (t *Translator) Start() int { return t.vocab.Len() + 2 }

// Tokens is the number of token ids: the symbols, End, Pad and Start.
func (t *Translator) Tokens() int { return t.vocab.Len() + 3 }

// SourceLen is the number of positions of a source: those of the longest.
func (t *Translator) SourceLen() int { return t.task.MaxLen }

// TargetLen is the number of positions of an input or a target: the longest answer and a token more.
func (t *Translator) TargetLen() int { return t.task.MaxAnswer + 1 }

// Batch is the batch of these sources, in size rows. Rows beyond the sources are padding throughout, of length 0. More
// sources than rows are an error, as is a source that has no answer: see Task.Answer.
func (t *Translator) Batch(sources []string, size int) (Pairs, error) {
	if len(sources) > size {
		return Pairs{}, fmt.Errorf("a batch of %d rows has no room for %d sources", size, len(sources))
	}
	if err := checkSize(size, max(t.SourceLen(), t.TargetLen())); err != nil {
		return Pairs{}, err
	}
	p := Pairs{
		Sources: filled(size*t.SourceLen(), t.Pad()),
		Lengths: make([]int, size),
		Inputs:  filled(size*t.TargetLen(), t.Pad()),
		Targets: filled(size*t.TargetLen(), Ignore),
		Size:    size, SourceLen: t.SourceLen(), TargetLen: t.TargetLen(),
	}
	for r, source := range sources {
		answer, err := t.task.Answer(source)
		if err != nil {
			return Pairs{}, err
		}
		in, err := t.task.encode(source)
		if err != nil {
			return Pairs{}, err
		}
		out, err := t.vocab.Encode(answer)
		if err != nil {
			return Pairs{}, err
		}
		p.Lengths[r] = copy(p.Sources[r*p.SourceLen:], in)
		copy(p.Inputs[r*p.TargetLen:], append([]int{t.Start()}, out...))
		copy(p.Targets[r*p.TargetLen:], append(out, t.End()))
	}
	return p, nil
}

// Answer is the answer that token ids spell, as a model wrote them: the symbols up to the first End, Pad or Start, or
// all of them if there is none. An id before that which is no token's is an error.
func (t *Translator) Answer(ids []int) (string, error) {
	for i, id := range ids {
		if id == t.End() || id == t.Pad() || id == t.Start() {
			ids = ids[:i]
			break
		}
	}
	return t.vocab.Decode(ids)
}
