package data

import (
	"math"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

func TestPad(t *testing.T) {
	for _, tc := range []struct {
		name       string
		rows       [][]int
		width, pad int
		want       []int
		lengths    []int
		wantErr    string
	}{
		{"to the longest row", [][]int{{1}, {2, 3, 4}, {}}, 0, 9, []int{1, 9, 9, 2, 3, 4, 9, 9, 9}, []int{1, 3, 0}, ""},
		{"to a width", [][]int{{1}, {2, 3}}, 3, Ignore, []int{1, -1, -1, 2, 3, -1}, []int{1, 2}, ""},
		{"to the width of the rows", [][]int{{1, 2}}, 2, 0, []int{1, 2}, []int{2}, ""},
		{"empty rows", [][]int{{}, nil}, 0, 7, []int{7, 7}, []int{0, 0}, ""},
		{"a row that is too long", [][]int{{1}, {1, 2, 3}}, 2, 0, nil, nil, "row 1 has 3 ids, more than the width of 2"},
		{"no rows", nil, 0, 0, nil, nil, "at least one row"},
		{"no rows, but a width", [][]int{}, 3, 0, nil, nil, "at least one row"},
		{"a width below 0", [][]int{{}}, -1, 0, nil, nil, "the width must be at least 1, or 0 for the length of the longest row, got -1"},
		{"too large", [][]int{{}, {}}, math.MaxInt, 0, nil, nil, "at most"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, err := Pad(tc.rows, tc.width, tc.pad)
			if must.Match(t, err, tc.wantErr) {
				return
			}
			if !slices.Equal(b.Inputs, tc.want) || !slices.Equal(b.Lengths, tc.lengths) || b.Size != len(tc.rows) || b.Size*b.Len != len(tc.want) {
				t.Errorf("got %+v, want ids %v and lengths %v", b, tc.want, tc.lengths)
			}
			if b.Targets != nil || b.DecoderInputs != nil || b.TargetLen != 0 {
				t.Errorf("got %+v, want no targets", b)
			}
		})
	}
	rows := [][]int{{1}}
	b := must.Get(Pad(rows, 0, 0))(t)
	if b.Inputs[0] = 2; rows[0][0] != 1 {
		t.Error("the batch shares the rows' memory")
	}
}

func TestRows(t *testing.T) {
	whole := must.Get(Pad([][]int{{1}, {2, 3}, {4, 5}}, 0, 9))(t)
	part := whole.Rows(1, 3)
	if !slices.Equal(part.Inputs, []int{2, 3, 4, 5}) || !slices.Equal(part.Lengths, []int{2, 2}) || part.Size != 2 || part.Len != 2 || part.Targets != nil {
		t.Errorf("without targets: got %+v, want the last two rows", part)
	}
	whole.Targets = []int{0, 1, 0}
	if part := whole.Rows(1, 2); !slices.Equal(part.Targets, []int{1}) {
		t.Errorf("one target per row: got %+v, want the target 1", part)
	}
	whole.Targets, whole.DecoderInputs, whole.TargetLen = []int{0, 1, 2, 3, 4, 5}, []int{9, 0, 9, 2, 9, 4}, 2
	if part := whole.Rows(0, 2); !slices.Equal(part.Targets, []int{0, 1, 2, 3}) || !slices.Equal(part.DecoderInputs, []int{9, 0, 9, 2}) {
		t.Errorf("targets and DecoderInputs: got %+v, want those of the first two rows", part)
	}
}
