package report

import "testing"

// Parts that don't fit are left out whole.
func TestLineFits(t *testing.T) {
	s := state{Steps: 200, Epochs: 7, Epoch: 2, Step: 150, loss: 0.037042, Rate: 719.4, EpochLeft: 62, RunLeft: 3602}
	for _, c := range []struct {
		width   int
		unicode bool
		want    string
	}{
		{5, true, ""},
		{10, true, ""},
		{18, true, "Epoch 2, 7 in all"},
		{30, true, "Epoch 2, 7 in all  150/200"},
		{40, true, "Epoch 2, 7 in all  150/200  left: 1:02"},
		{60, false, "Epoch 2, 7 in all  150/200  left: 1:02  run: 1:00:02"},
		{60, true, "Epoch 2, 7 in all  150/200  left: 1:02  run: 1:00:02"},
		{130, true, "Epoch 2, 7 in all  ███████████████░░░░░  150/200  719 steps/s  left: 1:02  run: 1:00:02  loss 0.03704  █▆▄▁"},
		{130, false, "Epoch 2, 7 in all  [###############-----]  150/200  719 steps/s  left: 1:02  run: 1:00:02  loss 0.03704"},
	} {
		if got := line(s, []float64{4, 3, 2, 0.4}, c.width, c.unicode); got != c.want {
			t.Errorf("the line in %d columns is %q, want %q", c.width, got, c.want)
		}
	}
	s = state{Steps: 200, Epoch: 2, Step: 1, loss: 2, EpochLeft: -1, RunLeft: -1}
	if got, want := line(s, []float64{2}, 80, false), "Epoch 2  [--------------------]  1/200  loss 2"; got != want {
		t.Errorf("without known times the line is %q, want %q", got, want)
	}
}
