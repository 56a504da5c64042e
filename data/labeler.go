package data

import (
	"fmt"
	"strings"
)

// Labeler turns the sources of a task into batches for a model that labels every position, and the labels back into
// answers. No answer may be longer than its source: see Translator for those that may.
//
// A row's input is the symbols of the source, then the end token. Its targets are the symbols of the answer, then the end
// token at every position left up to that of the input's end. What follows is padding: the pad token, with targets Ignore.
//
//	input   l a m p ⏎ · ·
//	target  p m a l ⏎
//
// Sums are laid out in columns, so that digits of one weight always stand in one place:
//
//	input   0 7 + 3 5 ⏎
//	target  0 0 0 4 2 ⏎
//
// A symbol's token id is its id in the vocabulary; End and then Pad come after the symbols. Pad is never a target, so a
// model takes in Tokens ids and chooses among Labels.
type Labeler struct {
	task  Task
	vocab *Vocab
}

// NewLabeler is the labeler of a task that Named made. A task whose answers may be longer than their sources is an error.
func NewLabeler(task Task) (*Labeler, error) {
	if task.vocab == nil {
		return nil, fmt.Errorf("no task to label: make one with Named")
	}
	if task.longer {
		return nil, fmt.Errorf("task %s: a Labeler writes an answer over its source, but the answers of %[1]s may be longer: use a Translator", task.Name)
	}
	return &Labeler{task: task, vocab: task.vocab}, nil
}

// Vocab is the vocabulary of the task's symbols.
func (l *Labeler) Vocab() *Vocab { return l.vocab }

// End is the id of the end token, which follows every source and fills what its answer leaves.
func (l *Labeler) End() int { return l.vocab.Len() }

// Pad is the id of the pad token, in inputs after the end token.
func (l *Labeler) Pad() int { return l.vocab.Len() + 1 }

// Tokens is the number of token ids in inputs: the symbols, End and Pad.
func (l *Labeler) Tokens() int { return l.vocab.Len() + 2 }

// Labels is the number of ids in targets: the symbols and End.
func (l *Labeler) Labels() int { return l.vocab.Len() + 1 }

// Len is the number of positions of a row: the longest source and its end token.
func (l *Labeler) Len() int { return l.task.MaxLen + 1 }

// Batch is the batch of these sources, in size rows. Rows beyond the sources are padding throughout, of length 0. More
// sources than rows are an error, as is a source that has no answer: see Task.Answer.
func (l *Labeler) Batch(sources []string, size int) (Batch, error) {
	if len(sources) > size {
		return Batch{}, fmt.Errorf("a batch of %d rows has no room for %d sources", size, len(sources))
	}
	b, err := newBatch(size, l.Len(), l.Pad())
	if err != nil {
		return Batch{}, err
	}
	for r, source := range sources {
		row := r * b.Len
		b.Lengths[r], err = l.fill(b.Inputs[row:row+b.Len], b.Targets[row:row+b.Len], source)
		if err != nil {
			return Batch{}, err
		}
	}
	return b, nil
}

// fill writes one row and returns how many of its positions are valid.
func (l *Labeler) fill(input, target []int, source string) (int, error) {
	answer, err := l.task.Answer(source)
	if err != nil {
		return 0, err
	}
	if l.task.columns != nil {
		source, answer = l.task.columns(source, answer)
	}
	in, err := l.vocab.Encode(source)
	if err != nil {
		return 0, err
	}
	out, err := l.vocab.Encode(answer)
	if err != nil {
		return 0, err
	}
	n := len(in) + 1
	copy(input, append(in, l.End()))
	copy(target, out)
	for i := len(out); i < n; i++ {
		target[i] = l.End()
	}
	return n, nil
}

// Answer is the answer that a row of labels spells: its symbols up to the first End or Pad, or all of them if there is
// neither; a sum loses its leading zeros. labels are those of the valid positions of a row; any that isn't a token id is
// an error.
func (l *Labeler) Answer(labels []int) (string, error) {
	for i, id := range labels {
		if id == l.End() || id == l.Pad() {
			labels = labels[:i]
			break
		}
	}
	answer, err := l.vocab.Decode(labels)
	if l.task.columns != nil && answer != "" {
		answer = strings.TrimLeft(answer[:len(answer)-1], "0") + answer[len(answer)-1:]
	}
	return answer, err
}
