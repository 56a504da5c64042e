package data

import "fmt"

// TrainBatch returns the batch of one training step: size windows of length+1 characters, or tokens, each uniform over
// the first nine tenths of the text. Inputs are the ids of a window's first length ones, and targets those of its last:
// what comes after each. The windows depend on the text and on the arguments alone.
func (t *Text) TrainBatch(seed uint64, epoch, step, size, length int) (Batch, error) {
	b, err := newBatch(size, Layout{Len: length, TargetLen: length, Start: -1})
	if err != nil {
		return Batch{}, err
	}
	train := t.trainLen()
	if length >= train {
		return Batch{}, t.short(length)
	}
	rng := newRand(seed, forText, epoch, step)
	window := make([]int, length+1)
	for row := range size {
		if err := t.fill(&b, row, rng.IntN(train-length), window); err != nil {
			return Batch{}, err
		}
	}
	return b, nil
}

// ValidationBatch returns the batch of some of the ValidationWindows(length, limit), by their numbers from 0. Windows
// are as in TrainBatch, spread evenly over the last tenth of the text, without anything in common. A number that has
// no window is an error.
func (t *Text) ValidationBatch(numbers []int, length, limit int) (Batch, error) {
	windows, err := t.ValidationWindows(length, limit)
	if err != nil {
		return Batch{}, err
	}
	b, err := newBatch(len(numbers), Layout{Len: length, TargetLen: length, Start: -1})
	if err != nil {
		return Batch{}, err
	}
	start := spread(windows, length+1, t.Len()-t.trainLen())
	window := make([]int, length+1)
	for row, n := range numbers {
		if n < 0 || n >= windows {
			return Batch{}, fmt.Errorf("text %q has %d validation windows of length %d, so no window %d", t.name, windows, length, n)
		}
		if err := t.fill(&b, row, t.trainLen()+start(n), window); err != nil {
			return Batch{}, err
		}
	}
	return b, nil
}

// ValidationWindows returns the number of validation windows of length+1 characters, or tokens: as many as the last
// tenth of the text holds side by side, but at most limit, where 0 sets no limit. It is an error, which says what is
// needed, if the text is too short for one; no error means that it is long enough to train with that length, too.
func (t *Text) ValidationWindows(length, limit int) (int, error) {
	if length < 1 || limit < 0 {
		return 0, fmt.Errorf("validation windows need a length of 1 or more and a limit of 0 or more, got %d and %d", length, limit)
	}
	validation := t.Len() - t.trainLen()
	if length >= validation {
		return 0, t.short(length)
	}
	windows := validation / (length + 1)
	if limit > 0 {
		windows = min(windows, limit)
	}
	return windows, nil
}

// trainLen returns the number of characters that train, from the start of the text: nine tenths, rounded down. Of
// tokens, it is how many these are.
func (t *Text) trainLen() int {
	if t.tokenizer != nil {
		return t.trainTokens
	}
	return t.chars - t.chars/10 - min(t.chars%10, 1)
}

func (t *Text) short(length int) error {
	return fmt.Errorf("text %q has %d %s, too few for windows of length %d: training has its first %d and validation its last %d, and each needs more than %d; give a longer text or a smaller length",
		t.name, t.Len(), t.units(), length, t.trainLen(), t.Len()-t.trainLen(), length)
}

// fill reads a window from start on into a row of a batch.
func (t *Text) fill(b *Batch, row, start int, window []int) error {
	if err := t.Window(window, start); err != nil {
		return err
	}
	copy(b.Inputs[row*b.Len:(row+1)*b.Len], window)
	copy(b.Targets[row*b.Len:(row+1)*b.Len], window[1:])
	b.Lengths[row] = b.Len
	return nil
}

// spread places n windows of a width in a room that holds them, evenly from one end to the other: it gives the start of
// each. The gaps between starts differ by at most 1, and none is below the width.
func spread(n, width, room int) func(i int) int {
	if n == 1 {
		return func(int) int { return 0 }
	}
	gap, wider := (room-width)/(n-1), (room-width)%(n-1)
	return func(i int) int { return i*gap + min(i, wider) }
}
