package data

import (
	"math"
	"slices"
	"testing"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
)

func masked(t *testing.T, rule Rule) *MaskedText {
	t.Helper()
	rule.Name, rule.Kind = "mlm", KindMaskedText
	return newCoderOf(t, rule).(*MaskedText)
}

// Of the symbols of each row, 15 % must be targets: 80 % of them masks, 10 % random symbols and 10 % unchanged. The
// choice must depend on the seed, the epoch and the row's number, and not on the rows beside it.
func TestMask(t *testing.T) {
	m := masked(t, Rule{Alphabet: "abcdefghij", MaxLen: 40})
	const rows = 400
	windows := Batch{Size: rows, Len: 40, Inputs: make([]int, 40*rows), Lengths: make([]int, rows)}
	numbers := make([]int, rows)
	for i := range windows.Inputs {
		windows.Inputs[i] = i * 7 % 10
		numbers[i/40] = 3 * (i / 40)
	}
	mask := func(b Batch, seed uint64, epoch int, numbers ...int) Batch {
		return must.Get(m.Mask(b, seed, epoch, numbers))(t)
	}
	b := mask(windows, 1, 0, numbers...)
	places := map[int]bool{}
	counts := map[string]int{}
	for i, target := range b.Targets {
		switch id := b.Inputs[i]; {
		case target == Ignore && id != windows.Inputs[i]:
			t.Fatalf("position %d: a symbol that is no target has changed from %d to %d", i, windows.Inputs[i], id)
		case target == Ignore:
			continue
		case target != windows.Inputs[i]:
			t.Fatalf("position %d: the target is %d, want %d", i, target, windows.Inputs[i])
		case id == 10:
			counts["mask"]++
		case id == target:
			counts["unchanged"]++ // with a tenth of the random symbols
		default:
			counts["random"]++
		}
		places[i%40] = true
	}
	for name, want := range map[string]float64{"mask": 0.8, "unchanged": 0.11, "random": 0.09} {
		if share := float64(counts[name]) / (6 * rows); math.Abs(share-want) > 0.03 {
			t.Errorf("%s: a share of %.3f of the targets, want %.2f", name, share, want)
		}
	}
	if b.Counted() != 6*rows || len(places) != 40 || slices.Min(b.Lengths) != 40 {
		t.Errorf("got %d targets at %d places, lengths from %d; want 6 of 40 in each row, anywhere", b.Counted(), len(places), slices.Min(b.Lengths))
	}
	same := func(a, b Batch) bool { return slices.Equal(a.Inputs, b.Inputs) && slices.Equal(a.Targets, b.Targets) }
	if part := mask(windows.Rows(5, 9), 1, 0, numbers[5:9]...); !same(part, b.Rows(5, 9)) {
		t.Error("rows 5 to 8 by themselves have other masks")
	}
	for name, other := range map[string]Batch{"seed": mask(windows, 2, 0, numbers...), "epoch": mask(windows, 1, 1, numbers...), "number": mask(windows, 1, 0, append(numbers[1:], 0)...)} {
		if slices.Equal(other.Targets, b.Targets) {
			t.Errorf("another %s has the same masks", name)
		}
	}
	must.Refuse(m.Mask(windows.Rows(0, 2), 1, 0, []int{1}))(t, "got 2 windows of 40 symbols and 1 numbers")
}

func TestMaskedText(t *testing.T) {
	m := masked(t, Rule{Alphabet: "abc", MaxLen: 4})
	b, err := m.Batch([]Example{{Source: "a[MASK]b"}, {Source: "[MASK][MASK]ca", Answer: "abca"}})
	if want := []int{0, 3, 1, 3, 3, 3, 2, 0}; err != nil || !slices.Equal(b.Inputs, want) || !slices.Equal(b.Lengths, []int{3, 4}) {
		t.Errorf("got %+v, %v, want the ids %v", b, err, want)
	}
	if want := []int{-1, -1, -1, -1, 0, 1, -1, -1}; !slices.Equal(b.Targets, want) {
		t.Errorf("got the targets %v, want %v", b.Targets, want)
	}
	if text, err := m.Answer([]int{0, 2, 1}); text != "acb" || err != nil {
		t.Errorf("got the answer %q, %v, want acb", text, err)
	}
	for source, want := range map[string]string{
		"abc": "no mask: write [MASK]", "[MASK]abca": "5 tokens, but the model reads at most 4", "[MASK]d": "'d'", "": "no mask",
	} {
		must.Refuse(m.Batch([]Example{{Source: source}}))(t, want)
	}
	must.Refuse(m.Batch([]Example{{Source: "a[MASK]", Answer: "abc"}}))(t, "3 tokens and the source 2")
	source, _ := m.Tokenizers()
	if text, err := source.Decode([]int{3, 0}); text != "[MASK]a" || err != nil || source.Len() != 4 {
		t.Errorf("the tokenizer of sources has %d ids and decodes to %q, %v, want 4 and [MASK]a", source.Len(), text, err)
	}
}

// A published model must get its own id for masks, with its special tokens around each window, and never as targets.
func TestMaskedPublished(t *testing.T) {
	folder := writeAll(t, map[string]string{"vocab.txt": "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n"})
	rule := Rule{Source: must.Get(tokenizer.Open(folder))(t), MaxLen: 10, Published: Published{Tokens: 9, Start: -1, Pad: 0, Mask: 4}}
	m := masked(t, rule)
	if m.Window() != 8 || m.Name() != "[MASK]" {
		t.Errorf("got windows of %d symbols and masks %s, want 8 and [MASK]", m.Window(), m.Name())
	}
	b, err := m.Batch([]Example{{Source: "a [MASK] c"}})
	if want := []int{2, 5, 4, 7, 3, 0, 0, 0, 0, 0}; err != nil || !slices.Equal(b.Inputs, want) {
		t.Errorf("got %v, %v, want %v", b.Inputs, err, want)
	}
	if text, err := m.Answer([]int{2, 5, 6, 7, 3}); text != "a b c" || err != nil {
		t.Errorf("got the answer %q, %v, want a b c", text, err)
	}
	for number := range 50 {
		b, err := m.Mask(Batch{Size: 1, Len: 8, Inputs: []int{1, 1, 1, 1, 1, 1, 1, 6}}, 1, 0, []int{number})
		if err != nil || b.Inputs[0] != 2 || b.Inputs[9] != 3 || b.Counted() != 1 || b.Targets[8] != 6 || b.Inputs[8] < 4 || b.Inputs[8] > 7 {
			t.Fatalf("got %+v, %v, want [CLS], the window and [SEP], and only the b as a target", b, err)
		}
	}
	rule.Name, rule.Kind = "mlm", KindMaskedText
	for _, change := range []func(r *Rule){func(r *Rule) { r.Published.Mask = -1 }, func(r *Rule) { r.Published.Mask = 5 }, func(r *Rule) { r.MaxLen = 2 }} {
		r := rule
		change(&r)
		must.Refuse(NewCoder(r))(t, `task "mlm": `)
	}
}
