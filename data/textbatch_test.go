package data

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// marked returns a text of n different characters. The id of a character is its index, so ids show the position of a
// window.
func marked(t testing.TB, n int) *Text {
	t.Helper()
	var s strings.Builder
	for i := range n {
		s.WriteRune(rune('一' + i))
	}
	return textOf(t, s.String())
}

// Windows have consecutive characters, targets are shifted by one, and training windows are in the first nine tenths.
func TestTrainBatch(t *testing.T) {
	const n, size, length = 1005, 8, 16
	text := marked(t, n)
	starts := make(map[int]int)
	for step := range 1000 {
		b := must.Get(text.TrainBatch(1, 0, step, size, length))(t)
		if b.Size != size || b.Len != length || b.Counted() != size*length {
			t.Fatalf("got size %d, length %d and %d targets, want %d, %d and %d", b.Size, b.Len, b.Counted(), size, length, size*length)
		}
		for row := range size {
			start := b.Inputs[row*length]
			starts[start]++
			checkRow(t, &b, row, start)
			if start+length > 903 {
				t.Fatalf("a training window starts at %d and leaves the first 904 characters, which are for training", start)
			}
		}
	}
	// 8000 draws from 888 possible starts.
	if len(starts) < 880 || starts[0] == 0 || starts[887] == 0 {
		t.Errorf("got %d different starts, the first %d times and the last %d times; want at least 880, with both", len(starts), starts[0], starts[887])
	}
}

// numbers returns the n integers first, first+1 and so on.
func numbers(first, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = first + i
	}
	return out
}

func TestValidationBatch(t *testing.T) {
	const length, size = 9, 4
	text := marked(t, 1005) // 101 characters for validation, from 904 on
	for _, tc := range []struct{ limit, want int }{{0, 10}, {100, 10}, {10, 10}, {7, 7}, {2, 2}, {1, 1}} {
		t.Run(fmt.Sprint(tc.limit), func(t *testing.T) {
			windows, err := text.ValidationWindows(length, tc.limit)
			if err != nil || windows != tc.want {
				t.Fatalf("%d windows, %v; want %d", windows, err, tc.want)
			}
			end, first, last := 904, -1, -1
			batches := (windows + size - 1) / size
			for i := range batches {
				rows := min(size, windows-i*size)
				b := must.Get(text.ValidationBatch(numbers(i*size, rows), length, tc.limit))(t)
				if b.Counted() != rows*length {
					t.Errorf("batch %d: got %d counted targets, want %d", i, b.Counted(), rows*length)
				}
				for row := range rows {
					start := b.Inputs[row*length]
					checkRow(t, &b, row, start)
					if start < end {
						t.Errorf("window at %d, but the previous window ends at %d", start, end)
					}
					end, last = start+length+1, start
					if first < 0 {
						first = start
					}
				}
			}
			if first != 904 || end > 1005 || windows > 1 && last != 1005-length-1 {
				t.Errorf("got windows from %d to %d, want them to cover the last tenth, 904 to 1005", first, end)
			}
			for _, i := range []int{-1, windows, math.MaxInt} {
				must.Refuse(text.ValidationBatch([]int{0, i}, length, tc.limit))(t, fmt.Sprintf("there is no window %d", i))
			}
		})
	}
}

func TestSpread(t *testing.T) {
	for width := 1; width < 6; width++ {
		for room := width; room < 60; room++ {
			for n := 1; n <= room/width; n++ {
				start := spread(n, width, room)
				least, largest := room, 0
				for i := 1; i < n; i++ {
					gap := start(i) - start(i-1)
					least, largest = min(least, gap), max(largest, gap)
				}
				if start(0) != 0 || n > 1 && (start(n-1) != room-width || least < width || largest > least+1) {
					t.Fatalf("%d windows of width %d in %d: starts from %d to %d, distances from %d to %d", n, width, room, start(0), start(n-1), least, largest)
				}
			}
		}
	}
}

// A batch depends only on its arguments, not on earlier calls or the goroutine.
func TestTextBatchesAreRandomAccess(t *testing.T) {
	text := marked(t, 2000)
	var train, validation []Batch
	for step := range 40 {
		train = append(train, must.Get(text.TrainBatch(9, step/10, step%10, 4, 12))(t))
	}
	for i := range 4 {
		validation = append(validation, must.Get(text.ValidationBatch(numbers(i*4, min(4, 15-i*4)), 12, 15))(t))
	}
	other := marked(t, 2000)
	var wg sync.WaitGroup
	for step := len(train) - 1; step >= 0; step-- {
		wg.Go(func() {
			b, err := other.TrainBatch(9, step/10, step%10, 4, 12)
			if err != nil || !reflect.DeepEqual(b, train[step]) {
				t.Errorf("step %d differs: %v", step, err)
			}
			b, err = other.ValidationBatch(numbers(step%4*4, min(4, 15-step%4*4)), 12, 15)
			if err != nil || !reflect.DeepEqual(b, validation[step%4]) {
				t.Errorf("validation batch %d differs: %v", step%4, err)
			}
		})
	}
	wg.Wait()
	for _, differs := range []struct {
		seed        uint64
		epoch, step int
	}{{10, 0, 0}, {9, 1, 0}, {9, 0, 1}, {9, -1, 0}} {
		b, err := text.TrainBatch(differs.seed, differs.epoch, differs.step, 4, 12)
		if err != nil || reflect.DeepEqual(b, train[0]) {
			t.Errorf("%+v: got the batch of seed 9, epoch 0 and step 0 again, or error %v", differs, err)
		}
	}
}

func TestTextTooShort(t *testing.T) {
	for n := 1; n < 50; n++ {
		text := marked(t, n)
		if got, want := text.trainLen(), n*9/10; got != want {
			t.Errorf("%d of %d characters are for training, want %d", got, n, want)
		}
		for length := 1; length < 7; length++ {
			_, err := text.ValidationWindows(length, 0)
			if want := n-n*9/10 > length; (err == nil) != want {
				t.Fatalf("%d characters, length %d: allowed: %t, want %t (error: %v)", n, length, !want, want, err)
			}
			if err == nil {
				if _, err := text.TrainBatch(0, 0, 0, 1, length); err != nil {
					t.Fatalf("%d characters are enough for validation but not for training: %v", n, err)
				}
			}
		}
	}
	text := marked(t, 100)
	want := "has 100 characters, too few for windows of length 90: training has the first 90 and validation the last 10, and each needs more than 90"
	must.Refuse(text.TrainBatch(0, 0, 0, 1, 90))(t, `"memory"`, want)
	must.Refuse(text.ValidationBatch([]int{0}, 90, 0))(t, `"memory"`, want)
	must.Refuse(text.ValidationWindows(math.MaxInt, 0))(t, "too few")
}

func TestTextBatchSizes(t *testing.T) {
	text := marked(t, 100)
	for _, tc := range []struct{ size, length int }{{0, 5}, {-1, 5}, {2, 0}, {2, -1}, {math.MaxInt, 5}} {
		must.Refuse(text.TrainBatch(0, 0, 0, tc.size, tc.length))(t)
		if tc.size < math.MaxInt { // numbers(0, math.MaxInt) needs too much memory
			must.Refuse(text.ValidationBatch(numbers(0, max(tc.size, 0)), tc.length, 0))(t)
		}
	}
	must.Refuse(text.ValidationWindows(5, -1))(t, "a limit of at least 0, got 5 and -1")
}

func TestTinyShakespeare(t *testing.T) {
	text, err := OpenText(oneFile("../../shared/data/tinyshakespeare.txt"), nil)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("there is no ../shared/data/tinyshakespeare.txt beside the repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	if text.Len() != 1_115_394 || vocabOf(text).Len() != 65 || text.trainLen() != 1_003_854 {
		t.Errorf("got %d characters, %d symbols and %d characters for training", text.Len(), vocabOf(text).Len(), text.trainLen())
	}
	ids := make([]int, 14)
	must.Do(t, text.Window(ids, 0))
	if got, err := vocabOf(text).Decode(ids); err != nil || got != "First Citizen:" {
		t.Errorf("the text starts with %q, %v, want First Citizen:", got, err)
	}
}

// checkRow fails the test unless a row of b is the window at start. The text is from marked, so ids are positions.
func checkRow(t *testing.T, b *Batch, row, start int) {
	t.Helper()
	for i := range b.Len {
		if input, target := b.Inputs[row*b.Len+i], b.Targets[row*b.Len+i]; input != start+i || target != start+i+1 {
			t.Fatalf("position %d of a window at %d: got input %d and target %d, want %d and %d", i, start, input, target, start+i, start+i+1)
		}
	}
	if b.Lengths[row] != b.Len {
		t.Errorf("got length %d for a full row, want %d", b.Lengths[row], b.Len)
	}
}

func BenchmarkOpenText(b *testing.B) {
	const size = 1 << 22
	b.SetBytes(size)
	for b.Loop() {
		must.Get(newText("letters", textSource{ReaderAt: letterAt{}, size: size}, nil))(b)
	}
}

func BenchmarkTrainBatch(b *testing.B) {
	text := openFile(b, write(b, strings.Repeat("To be, or not to be: that is the question.\n", 20_000)), nil)
	b.ReportAllocs()
	for step := 0; b.Loop(); step++ {
		must.Get(text.TrainBatch(1, 0, step, 32, 64))(b)
	}
}
