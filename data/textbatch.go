package data

import "fmt"

// TrainBatch returns the batch for one training step: size windows of length+1 characters or tokens, drawn uniformly
// from the first nine tenths of the text. Inputs are the ids of a window without the last, and targets are the ids
// without the first. So each target is the id after its input. The windows depend only on the text and the arguments.
// TrainBatch returns an error if the text is too short or a window can't be read.
func (t *Text) TrainBatch(seed uint64, epoch, step, size, length int) (Batch, error) {
	b, err := t.newBatch(size, length)
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

// ValidationBatch returns a batch of the validation windows with these numbers, from 0 to ValidationWindows(length,
// limit) − 1. Windows have inputs and targets as in TrainBatch. They are spread evenly over the last tenth of the text
// and don't overlap. ValidationBatch returns an error if a number is out of range, the text is too short, or a window
// can't be read.
func (t *Text) ValidationBatch(numbers []int, length, limit int) (Batch, error) {
	windows, err := t.ValidationWindows(length, limit)
	if err != nil {
		return Batch{}, err
	}
	b, err := t.newBatch(len(numbers), length)
	if err != nil {
		return Batch{}, err
	}
	start := spread(windows, length+1, t.Len()-t.trainLen())
	window := make([]int, length+1)
	for row, n := range numbers {
		if n < 0 || n >= windows {
			return Batch{}, fmt.Errorf("text %q has %d validation windows of length %d: there is no window %d", t.name, windows, length, n)
		}
		if err := t.fill(&b, row, t.trainLen()+start(n), window); err != nil {
			return Batch{}, err
		}
	}
	return b, nil
}

// ValidationWindows returns the number of windows of length+1 characters or tokens that fit in the last tenth of the
// text without overlap. If limit is above 0, it returns at most limit. It returns an error if no window fits. If one
// fits, the text is also long enough for training.
func (t *Text) ValidationWindows(length, limit int) (int, error) {
	if length < 1 || limit < 0 {
		return 0, fmt.Errorf("validation windows need a length of at least 1 and a limit of at least 0, got %d and %d", length, limit)
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

// trainLen returns the number of characters or tokens for training, at the start of the text: nine tenths of the
// characters, rounded down.
func (t *Text) trainLen() int {
	if t.tokenizer != nil {
		return t.trainTokens
	}
	return t.chars - t.chars/10 - min(t.chars%10, 1)
}

func (t *Text) short(length int) error {
	return fmt.Errorf("text %q has %d %s, too few for windows of length %d: training has the first %d and validation the last %d, and each needs more than %d: give a longer text or a smaller length",
		t.name, t.Len(), t.units(), length, t.trainLen(), t.Len()-t.trainLen(), length)
}

// fill reads the window at start into one row of the batch. The argument window is its buffer.
func (t *Text) fill(b *Batch, row, start int, window []int) error {
	if err := t.Window(window, start); err != nil {
		return err
	}
	copy(b.Inputs[row*b.Len:(row+1)*b.Len], window)
	copy(b.Targets[row*b.Len:(row+1)*b.Len], window[1:])
	b.Lengths[row] = b.Len
	if t.packed {
		t.number(b, row, start)
	}
	return nil
}

// spread returns a function that gives the start of each of n windows. They are spread evenly over the positions from 0
// to room − 1, from one end to the other. Distances between starts differ by at most 1, and are at least width.
func spread(n, width, room int) func(i int) int {
	if n == 1 {
		return func(int) int { return 0 }
	}
	gap, wider := (room-width)/(n-1), (room-width)%(n-1)
	return func(i int) int { return i*gap + min(i, wider) }
}
